//! Locks on files that somebody removes.

use crate::support::{test, wait_until};
use fencing::durable::{Directory, FileIdentity, LockError, LockFile};
use libtest_mimic::Trial;
use std::{fs, sync::mpsc};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("case_13_a_waiter_reopens_a_removed_lock_file", waiter_reopens),
        test("case_13_a_holder_sees_that_its_lock_file_was_removed", holder_sees_removal),
        test("case_13_a_holder_sees_that_its_directory_was_moved", holder_sees_a_moved_directory),
        test("case_13_unlocking_leaves_the_lock_file", unlocking_leaves_the_file),
        test("handles_of_one_process_exclude_each_other", one_process),
    ]
}

/// Whether some process or thread waits for a lock on this file.
fn is_waited_for(file: FileIdentity) -> bool {
    let inode = format!(":{}", file.ino);
    fs::read_to_string("/proc/locks").unwrap().lines().any(|line| {
        line.contains("-> FLOCK") && line.split_whitespace().any(|field| field.ends_with(&inode))
    })
}

fn waiter_reopens() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.lock");
    let a = LockFile::acquire(&path).unwrap();
    let (locked, b) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| locked.send(LockFile::acquire(&path).unwrap()).unwrap());
        wait_until("B waits for A", || is_waited_for(a.identity()));

        fs::remove_file(&path).unwrap();
        let c = LockFile::try_acquire(&path).unwrap().expect("a new file, free");
        assert_ne!(c.identity(), a.identity());
        assert!(!a.still_in_place() && c.still_in_place());

        drop(a);
        // B now holds the old file. It must go on to wait for the new one.
        wait_until("B waits for C, or has a lock", || {
            assert!(b.try_recv().is_err(), "B and C both hold the lock");
            is_waited_for(c.identity())
        });
        let in_place = c.identity();
        drop(c);
        assert_eq!(b.recv().unwrap().identity(), in_place);
    });
}

fn holder_sees_removal() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.lock");
    let held = LockFile::acquire(&path).unwrap();
    assert!(held.still_in_place());
    fs::rename(&path, scratch.path().join("elsewhere")).unwrap();
    assert!(!held.still_in_place(), "nothing is there");
    fs::write(&path, b"").unwrap();
    assert!(!held.still_in_place(), "another file is there");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(scratch.path().join("elsewhere"), &path).unwrap();
    assert!(!held.still_in_place(), "a link to it is not it");
}

fn holder_sees_a_moved_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    let inner = Directory::open(&root).unwrap().ensure_subdirectory("inner".as_ref()).unwrap();
    let held = inner.lock("state.lock".as_ref()).unwrap();
    assert!(held.still_in_place());

    fs::rename(root.join("inner"), root.join("moved")).unwrap();
    assert!(!held.still_in_place());
    fs::create_dir(root.join("inner")).unwrap();
    assert!(!held.still_in_place());
    fs::remove_dir(root.join("inner")).unwrap();
    fs::rename(root.join("moved"), root.join("inner")).unwrap();
    assert!(held.still_in_place());
    fs::rename(&root, scratch.path().join("moved")).unwrap();
    assert!(!held.still_in_place(), "the first directory moved");
}

fn unlocking_leaves_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.lock");
    let first = LockFile::acquire(&path).unwrap();
    let identity = first.identity();
    drop(first);
    assert!(path.exists());
    assert_eq!(LockFile::acquire(&path).unwrap().identity(), identity);
}

fn one_process() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.lock");
    let held = LockFile::acquire(&path).unwrap();
    assert!(LockFile::try_acquire(&path).unwrap().is_none());
    drop(held);
    assert!(LockFile::try_acquire(&path).unwrap().is_some());
    let missing = LockFile::acquire(&scratch.path().join("none/state.lock")).unwrap_err();
    assert!(matches!(missing, LockError::Io { .. }), "{missing}");
}
