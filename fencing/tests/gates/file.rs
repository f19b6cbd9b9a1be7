//! The gate in a file: what is damaged, planted, put back or not on disk admits nothing.

use crate::kills::Killed;
use crate::support::{Skip, child, child_with_fault, skippable, test, wait_until};
use fencing::{
    Epoch, FileGate,
    durable::{FileKind, LockError, ReadError},
    gate::{FileGateError, MarkFlaw},
};
use libtest_mimic::Trial;
use std::{fs, path::Path, sync::mpsc};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("case_46_a_file_gate_compares_numbers_and_admits_ties", numbers_and_ties),
        test("case_16_an_empty_or_torn_mark_admits_nothing", damaged_marks),
        test("case_18_only_a_regular_file_is_a_mark", planted),
        test("a_mark_that_goes_back_or_vanishes_admits_nothing", went_back),
        test("an_admission_keeps_the_next_holder_out_until_its_write_has_ended", exclusive),
        test("a_gate_in_a_directory_that_is_not_there_is_not_opened", no_directory),
        test("a_lock_file_that_is_removed_excludes_nobody_and_says_so", lock_removed),
        skippable("a_mark_that_is_not_on_disk_admits_nothing", not_durable),
        skippable("a_mark_of_another_that_is_not_on_disk_admits_nothing", not_synced),
    ]
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

fn numbers_and_ties() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    let (a, b) = (FileGate::open(&path).unwrap(), FileGate::open(&path).unwrap());
    assert_eq!(a.highest().unwrap(), None);
    for token in [9, 10, 10] {
        assert_eq!(a.admit(epoch(token)).unwrap().token(), epoch(token));
    }
    let stale = b.admit(epoch(9)).unwrap_err().stale().unwrap();
    assert_eq!((stale.presented, stale.highest), (epoch(9), epoch(10)));
    b.raise(epoch((1 << 53) + 1)).unwrap();
    assert!(a.admit(epoch(1 << 53)).unwrap_err().stale().is_some());
    b.raise(Epoch::MAX).unwrap();
    assert_eq!(FileGate::open(&path).unwrap().highest().unwrap(), Some(Epoch::MAX));
    assert_eq!(fs::read(&path).unwrap(), b"fencing-mark 1 18446744073709551615\n");
}

fn damaged_marks() {
    let whole = b"fencing-mark 1 9007199254740993\n";
    let cut = (1..whole.len()).map(|end| (whole[..end].to_vec(), MarkFlaw::Torn));
    let other = [
        (vec![], MarkFlaw::Empty),
        (vec![0; 4096], MarkFlaw::TooLong),
        (vec![0; 32], MarkFlaw::Torn),
        (b"fencing-mark 1 0\n".to_vec(), MarkFlaw::NoMark),
        (b"fencing-mark 1 07\n".to_vec(), MarkFlaw::NoMark),
        (b"fencing-mark 1 -7\n".to_vec(), MarkFlaw::NoMark),
        (b"fencing-mark 1 18446744073709551616\n".to_vec(), MarkFlaw::NoMark),
        (b"fencing-mark 1 \n".to_vec(), MarkFlaw::NoMark),
        (b"fencing-mark 2 7\n".to_vec(), MarkFlaw::NoMark),
        (b"7\n".to_vec(), MarkFlaw::NoMark),
        (b"\xff\xfe\n".to_vec(), MarkFlaw::NoMark),
        ([&whole[..], whole].concat(), MarkFlaw::NoMark),
    ];
    for (content, flaw) in cut.chain(other) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("mark");
        let before = FileGate::open(&path).unwrap();
        fs::write(&path, &content).unwrap();
        let shown = String::from_utf8_lossy(&content);
        for error in [
            FileGate::open(&path).unwrap_err(),
            before.admit(Epoch::MAX).unwrap_err(),
            before.raise(Epoch::MAX).unwrap_err(),
        ] {
            match error {
                FileGateError::Damaged { flaw: found, .. } => assert_eq!(found, flaw, "{shown:?}"),
                other => panic!("{shown:?}: {other}"),
            }
        }
        assert_eq!(fs::read(&path).unwrap(), content, "it is left as it is");
    }
}

fn planted() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    let victim = scratch.path().join("victim");
    fs::write(&victim, b"fencing-mark 1 1\n").unwrap();
    let refused = |kind| match FileGate::open(&path).unwrap_err() {
        FileGateError::Read(ReadError::NotRegular { found, .. }) => assert_eq!(found, kind),
        other => panic!("{other}"),
    };
    fs::create_dir(&path).unwrap();
    refused(FileKind::Directory);
    fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    refused(FileKind::Symlink);
    fs::remove_file(&path).unwrap();

    // And in the place of the lock.
    fs::create_dir(scratch.path().join("mark.lock")).unwrap();
    let gate = FileGate::open(&path).unwrap();
    match gate.admit(epoch(7)).unwrap_err() {
        FileGateError::Lock(LockError::NotRegular { found, .. }) => {
            assert_eq!(found, FileKind::Directory);
        }
        other => panic!("{other}"),
    }
    assert!(!path.exists(), "nothing was remembered");
}

fn went_back() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    let gate = FileGate::open(&path).unwrap();
    gate.raise(epoch(7)).unwrap();
    let old = fs::read(&path).unwrap();
    gate.raise(epoch(8)).unwrap();
    let went_back = |error: FileGateError, to| match error {
        FileGateError::WentBack { found, seen, .. } => {
            assert_eq!((found, seen), (to, Some(epoch(8))));
        }
        other => panic!("{other}"),
    };
    fs::write(&path, old).unwrap();
    went_back(gate.admit(epoch(9)).unwrap_err(), Some(epoch(7)));
    fs::remove_file(&path).unwrap();
    went_back(gate.admit(epoch(9)).unwrap_err(), None);
    assert!(gate.admit(epoch(7)).unwrap_err().stale().is_some(), "that much is known");
    assert!(!path.exists());
    fs::write(&path, "fencing-mark 1 8\n").unwrap();
    drop(gate.admit(epoch(9)).unwrap());
}

fn exclusive() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    let (old, new) = (FileGate::open(&path).unwrap(), FileGate::open(&path).unwrap());
    let admitted = old.admit(epoch(7)).unwrap();
    assert!(admitted.still_holds());
    assert!(matches!(new.try_raise(epoch(8)), Err(FileGateError::Busy { .. })));
    assert!(matches!(new.try_admit(epoch(7)), Err(FileGateError::Busy { .. })));
    let (raised, done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| raised.send(new.raise(epoch(8))).unwrap());
        let inode = format!(":{}", inode_of(&scratch.path().join("mark.lock")));
        wait_until("the new holder waits", || {
            assert!(done.try_recv().is_err(), "it did not wait");
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| line.contains("-> FLOCK") && line.contains(&inode))
        });
        assert_eq!(old.highest().unwrap(), Some(epoch(7)));
        drop(admitted); // the write has ended
        done.recv().unwrap().unwrap();
    });
    assert!(old.admit(epoch(7)).unwrap_err().stale().is_some());

    // It works across processes too: one that holds an admission, and is killed with it.
    let mut holder = Killed(child("hold 9", &path).spawn().unwrap());
    wait_until("the child is admitted", || new.highest().unwrap() == Some(epoch(9)));
    wait_until("it holds the lock", || {
        matches!(new.try_raise(epoch(9)), Err(FileGateError::Busy { .. }))
    });
    holder.now();
    new.raise(epoch(10)).unwrap();
}

fn inode_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).unwrap().ino()
}

fn no_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let missing = FileGate::open(scratch.path().join("none/mark")).unwrap_err();
    assert!(matches!(missing, FileGateError::Read(ReadError::Io { .. })), "{missing}");
    FileGate::open("/").unwrap_err();
    FileGate::open("").unwrap_err();
}

fn lock_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    let gate = FileGate::open(root.join("mark")).unwrap();
    let admitted = gate.admit(epoch(7)).unwrap();
    fs::remove_file(root.join("mark.lock")).unwrap();
    assert!(!admitted.still_holds());
    drop(admitted);
    drop(gate.admit(epoch(7)).unwrap());

    // The handle would go on into a directory that was moved away.
    fs::rename(&root, scratch.path().join("moved")).unwrap();
    fs::create_dir(&root).unwrap();
    assert!(matches!(gate.admit(epoch(8)), Err(FileGateError::Moved { .. })));
}

/// What a child says that raises the mark from 7 to 8 twice, with a system call that fails the first
/// time; and what the mark is then.
fn with_fault(mode: &str, inject: &str) -> Result<(Vec<String>, String), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    FileGate::open(&path).unwrap().raise(epoch(7)).unwrap();
    let output = child_with_fault(mode, &path, inject, None)?.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    Ok((said, fs::read_to_string(&path).unwrap()))
}

fn not_durable() -> Result<(), Skip> {
    // The fsync of the directory, after the rename: the new mark shows, and may be gone tomorrow. The
    // second try finds it there and must not take that for "on disk": it writes it anew.
    let (said, mark) = with_fault("raise 8 twice", "fsync:error=EIO:when=2")?;
    assert_eq!(said, ["in doubt", "admitted"]);
    assert_eq!(mark, "fencing-mark 1 8\n");
    // While the disk fails, nothing is admitted however often it is tried.
    let (said, _) = with_fault("raise 8 twice", "fsync:error=EIO:when=2+2")?;
    assert_eq!(said, ["in doubt", "in doubt"]);
    // The fsync of the file, before the rename: nothing has changed.
    let (said, mark) = with_fault("raise 8 twice", "fsync:error=EIO")?;
    assert_eq!(said, ["not written", "not written"]);
    assert_eq!(mark, "fencing-mark 1 7\n");
    Ok(())
}

fn not_synced() -> Result<(), Skip> {
    // Another process wrote 7, and may have been killed before its fsync of the directory.
    let (said, _) = with_fault("raise 7 twice", "fsync:error=EIO:when=1")?;
    assert_eq!(said, ["not synced", "admitted"]);
    let (said, _) = with_fault("raise 7 twice", "fsync:error=EIO")?;
    assert_eq!(said, ["not synced", "not written"]);
    let (said, _) = with_fault("raise 7 twice", "fsync:delay_enter=1")?;
    assert_eq!(said, ["admitted", "admitted"]);
    Ok(())
}
