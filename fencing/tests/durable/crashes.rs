//! Writers that are killed, and system calls that fail: the tests start this binary again as a child.

use crate::support::{CHILD_PATH, Skip, child, child_with_fault, names, skippable, test};
use fencing::durable::{self, Content, Directory, WriteError};
use libtest_mimic::Trial;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
};

const LENGTH: usize = 30_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("case_17_a_killed_writer_leaves_old_or_new_whole", killed_writer),
        skippable("case_17_a_failed_directory_fsync_is_in_doubt", directory_fsync_fails),
        skippable("case_17_a_failed_file_fsync_is_not_written", file_fsync_fails),
        skippable("case_17_a_rename_with_an_io_error_is_in_doubt", rename_fails),
        skippable("case_17_a_refused_rename_is_not_written", rename_is_refused),
        skippable("create_falls_back_to_a_link", create_by_link),
    ]
}

/// What a child does, by the name that its test gave it.
pub(crate) fn run_child(mode: &str) {
    let path = PathBuf::from(std::env::var_os(CHILD_PATH).unwrap());
    let told = |result| match result {
        Ok(()) => "written".to_owned(),
        Err(WriteError::NotWritten { step, .. }) => format!("not written: {step:?}"),
        Err(WriteError::InDoubt { step, .. }) => format!("in doubt: {step:?}"),
        Err(other) => format!("{other:?}"),
    };
    match mode {
        "replace" => println!("{}", told(durable::replace(&path, b"new"))),
        "create" => println!("{}", told(durable::create_new(&path, b"new"))),
        "replace for ever" => {
            let mut out = std::io::stdout();
            for byte in (b'a'..=b'z').cycle() {
                durable::replace(&path, &[byte; LENGTH]).unwrap();
                writeln!(out, "{}", char::from(byte)).unwrap();
            }
        }
        other => panic!("no such child: {other}"),
    }
}

fn killed_writer() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state");
    durable::create_new(&path, &[b'a'; LENGTH]).unwrap();
    let mut random = u64::from(std::process::id()) | 1;
    let (mut rounds, mut killed_in_a_write) = (0, 0);
    // Where fsync costs nothing, few kills hit the moment between the temporary file and the rename.
    while rounds < 60 || (killed_in_a_write == 0 && rounds < 2000) {
        rounds += 1;
        let mut writer = child("replace for ever", &path).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut reported = None;
        for _ in 0..random >> 61 {
            reported = Some(lines.next().unwrap().unwrap());
        }
        for _ in 0..(random >> 40) % 300_000 {
            std::hint::spin_loop();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        if let Some(last) = lines.map_while(Result::ok).last() {
            reported = Some(last);
        }

        let Some(Content::Whole(content)) = durable::read_bounded(&path, LENGTH).unwrap() else {
            panic!("gone, or too large");
        };
        assert_eq!(content.len(), LENGTH);
        assert!(content.iter().all(|byte| *byte == content[0]), "a mixture");
        if let Some(reported) = reported {
            // What was reported is there, or the one write that was under way after it.
            let reported = reported.as_bytes()[0];
            let next = if reported == b'z' { b'a' } else { reported + 1 };
            assert!([reported, next].contains(&content[0]), "{reported} was reported");
        }
        let directory = Directory::open(scratch.path()).unwrap();
        killed_in_a_write += directory.sweep_temporaries("state".as_ref()).unwrap();
        assert_eq!(names(scratch.path()), ["state"]);
    }
    assert!(killed_in_a_write > 0, "no kill hit a write: it proves nothing");
}

/// Runs a child in a directory that has `state` = old, with a system call that fails; returns what
/// it said, what `state` is then, and how many files there are.
fn with_fault(mode: &str, inject: &str) -> Result<(String, Vec<u8>, usize), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state");
    if mode == "replace" {
        fs::write(&path, b"old").unwrap();
    }
    let output = child_with_fault(mode, &path, inject, None)?.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    Ok((said, read(&path), names(scratch.path()).len()))
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_default()
}

fn directory_fsync_fails() -> Result<(), Skip> {
    // The first fsync is the file's.
    let (said, content, files) = with_fault("replace", "fsync:error=EIO:when=2")?;
    assert_eq!(
        (said.as_str(), content.as_slice(), files),
        ("in doubt: SyncDirectory", &b"new"[..], 1)
    );
    let (said, content, files) = with_fault("create", "fsync:error=EIO:when=2")?;
    assert_eq!(
        (said.as_str(), content.as_slice(), files),
        ("in doubt: SyncDirectory", &b"new"[..], 1)
    );
    Ok(())
}

fn file_fsync_fails() -> Result<(), Skip> {
    let (said, content, files) = with_fault("replace", "fsync:error=EIO:when=1")?;
    assert_eq!(
        (said.as_str(), content.as_slice(), files),
        ("not written: SyncFile", &b"old"[..], 1)
    );
    let (said, _, files) = with_fault("create", "fsync:error=EIO:when=1")?;
    assert_eq!((said.as_str(), files), ("not written: SyncFile", 0));
    Ok(())
}

fn rename_fails() -> Result<(), Skip> {
    let (said, content, files) = with_fault("replace", "rename,renameat,renameat2:error=EIO")?;
    assert_eq!((said.as_str(), content.as_slice(), files), ("in doubt: Rename", &b"old"[..], 1));
    Ok(())
}

fn rename_is_refused() -> Result<(), Skip> {
    let (said, content, files) = with_fault("replace", "rename,renameat,renameat2:error=ENOSPC")?;
    assert_eq!((said.as_str(), content.as_slice(), files), ("not written: Rename", &b"old"[..], 1));
    Ok(())
}

fn create_by_link() -> Result<(), Skip> {
    for errno in ["EINVAL", "ENOSYS"] {
        let inject = format!("renameat2:error={errno}");
        let (said, content, files) = with_fault("create", &inject)?;
        assert_eq!((said.as_str(), content.as_slice(), files), ("written", &b"new"[..], 1));
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        fs::write(&path, b"old").unwrap();
        let output = child_with_fault("create", &path, &inject, None)?.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("AlreadyExists"), "{said}");
        assert_eq!((read(&path).as_slice(), names(scratch.path()).len()), (&b"old"[..], 1));
    }
    Ok(())
}
