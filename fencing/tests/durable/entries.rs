//! Names that are linked, renamed and removed one at a time.

use crate::support::{CHILD_PATH, Skip, child_with_fault, names, skippable, test};
use fencing::durable::{Directory, FileKind, ReadError, Step, WriteError};
use libtest_mimic::Trial;
use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_link_is_a_second_name_and_replaces_nothing", link),
        test("a_rename_replaces_unless_it_is_vetoed", rename),
        test("what_is_removed_is_gone_and_what_was_not_there_is_told", remove),
        test("a_new_file_is_created_once_and_opened_only_if_it_is_regular", create_and_open),
        test("case_19_no_name_leads_out_of_the_directory", names_stay),
        skippable("case_17_a_name_whose_directory_is_not_synced_is_in_doubt", not_synced),
        skippable("case_17_a_refused_name_is_not_changed", refused),
    ]
}

/// What a child does, by the name that its test gave it; `None` if it is none of these.
pub(crate) fn run_child(mode: &str) -> Option<()> {
    let change: fn(&Directory) -> Result<(), WriteError> = match mode {
        "link" => |root| root.link("a".as_ref(), "b".as_ref()),
        "rename" => |root| root.rename("a".as_ref(), "b".as_ref(), || Ok(())),
        "remove" => |root| root.remove("a".as_ref()).map(drop),
        _ => return None,
    };
    let root = directory(&PathBuf::from(std::env::var_os(CHILD_PATH).unwrap()));
    match change(&root).unwrap_err() {
        WriteError::NotWritten { step, .. } => println!("not changed: {step:?}"),
        WriteError::InDoubt { step, .. } => println!("in doubt: {step:?}"),
        other => println!("{other:?}"),
    }
    Some(())
}

fn directory(path: &Path) -> Directory {
    Directory::open(path).unwrap()
}

fn scratch() -> (tempfile::TempDir, Directory) {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("a"), b"old").unwrap();
    let root = directory(scratch.path());
    (scratch, root)
}

fn link() {
    let (scratch, root) = scratch();
    root.link("a".as_ref(), "b".as_ref()).unwrap();
    assert_eq!(root.entry("a".as_ref()).unwrap(), root.entry("b".as_ref()).unwrap());
    assert_eq!(fs::metadata(scratch.path().join("a")).unwrap().nlink(), 2);

    fs::write(scratch.path().join("c"), b"precious").unwrap();
    symlink("nowhere", scratch.path().join("d")).unwrap();
    for taken in ["b", "c", "d"] {
        let error = root.link("a".as_ref(), taken.as_ref()).unwrap_err();
        assert!(matches!(error, WriteError::AlreadyExists { .. }), "{error}");
    }
    assert_eq!(fs::read(scratch.path().join("c")).unwrap(), b"precious");
    let error = root.link("none".as_ref(), "e".as_ref()).unwrap_err();
    assert!(matches!(error, WriteError::NotWritten { step: Step::Link, .. }), "{error}");
}

fn rename() {
    let (scratch, root) = scratch();
    fs::write(scratch.path().join("b"), b"older").unwrap();
    let veto = || Err(io::Error::other("no"));
    let error = root.rename("a".as_ref(), "b".as_ref(), veto).unwrap_err();
    assert!(matches!(error, WriteError::NotWritten { step: Step::BeforeRename, .. }), "{error}");
    assert_eq!(fs::read(scratch.path().join("b")).unwrap(), b"older");
    root.rename("a".as_ref(), "b".as_ref(), || Ok(())).unwrap();
    assert_eq!(names(scratch.path()), ["b"]);
    assert_eq!(fs::read(scratch.path().join("b")).unwrap(), b"old");
}

fn remove() {
    let (scratch, root) = scratch();
    assert!(root.remove("a".as_ref()).unwrap());
    assert!(!root.remove("a".as_ref()).unwrap());
    fs::create_dir(scratch.path().join("d")).unwrap();
    root.remove("d".as_ref()).unwrap_err();
    assert_eq!(root.names().unwrap(), ["d"]);
    assert_eq!(root.entry("d".as_ref()).unwrap().unwrap().kind, FileKind::Directory);
}

fn create_and_open() {
    let (scratch, root) = scratch();
    let mut file = root.create_file("b".as_ref()).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(root.entry("b".as_ref()).unwrap().unwrap().size, 3);
    assert_eq!(fs::metadata(scratch.path().join("b")).unwrap().mode() & 0o777, 0o600);
    symlink("nowhere", scratch.path().join("l")).unwrap();
    for taken in ["a", "b", "l"] {
        let error = root.create_file(taken.as_ref()).unwrap_err();
        assert!(matches!(error, WriteError::AlreadyExists { .. }), "{error}");
    }
    assert!(root.open_file("a".as_ref()).unwrap().is_some());
    assert!(root.open_file("none".as_ref()).unwrap().is_none());
    let error = root.open_file("l".as_ref()).unwrap_err();
    assert!(matches!(error, ReadError::NotRegular { found: FileKind::Symlink, .. }), "{error}");
}

fn names_stay() {
    let (scratch, _) = scratch();
    fs::create_dir(scratch.path().join("inner")).unwrap();
    let inner = directory(&scratch.path().join("inner"));
    for outside in ["", ".", "..", "../a", "/etc/passwd", "x/y"] {
        let (outside, name) = (outside.as_ref(), "x".as_ref());
        assert!(inner.entry(outside).is_err());
        assert!(inner.create_file(outside).is_err());
        assert!(inner.open_file(outside).is_err());
        assert!(inner.link(outside, name).is_err() && inner.link(name, outside).is_err());
        assert!(inner.rename(outside, name, || Ok(())).is_err());
        assert!(inner.rename(name, outside, || Ok(())).is_err());
        assert!(inner.remove(outside).is_err());
    }
    assert_eq!(names(scratch.path()), ["a", "inner"]);
}

/// What a child says whose system call fails, and what is there then.
fn with_fault(mode: &str, inject: &str) -> Result<(String, Vec<String>), Skip> {
    let (scratch, _) = scratch();
    let output = child_with_fault(mode, scratch.path(), inject, None)?.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    Ok((said, names(scratch.path())))
}

fn not_synced() -> Result<(), Skip> {
    for (mode, there) in [("link", &["a", "b"][..]), ("rename", &["b"]), ("remove", &[])] {
        let (said, found) = with_fault(mode, "fsync:error=EIO")?;
        assert_eq!((said.as_str(), &found[..]), ("in doubt: SyncDirectory", &owned(there)[..]));
    }
    Ok(())
}

fn refused() -> Result<(), Skip> {
    let modes = [("link", "linkat", "Link"), ("rename", "renameat,rename,renameat2", "Rename")];
    for (mode, calls, step) in modes.into_iter().chain([("remove", "unlinkat,unlink", "Remove")]) {
        for (errno, told) in [("EPERM", "not changed"), ("EIO", "in doubt")] {
            let (said, found) = with_fault(mode, &format!("{calls}:error={errno}"))?;
            assert_eq!(said, format!("{told}: {step}"));
            assert_eq!(found, ["a"]);
        }
    }
    Ok(())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
