//! System calls that fail or are late, in a child under strace.

use crate::{
    children::KEY,
    found, key, run,
    support::{Skip, child_with_fault, names, skippable, wait_until},
};
use lease_core::LeaseStore as _;
use lease_local::LocalStore;
use libtest_mimic::Trial;
use std::{fs, process::Stdio};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        skippable("case_08_a_write_that_landed_in_doubt_is_found_again", doubt),
        skippable("case_13_a_writer_whose_lock_file_is_removed_gives_up", lock_file_removed),
        skippable("case_13_a_writer_whose_directory_is_moved_gives_up", directory_moved),
        skippable("case_16_an_io_error_is_not_missing", io_error),
        skippable("case_17_a_write_that_is_not_synced_is_in_doubt", not_synced),
    ]
}

/// A root with an object `old`, and its version.
fn root() -> (tempfile::TempDir, String) {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let version = run(store.create_if_absent(&key(KEY), "old".into())).unwrap();
    (scratch, version.tag().to_owned())
}

/// What a child that is in doubt says, when the fsyncs of its writing thread fail as `when` says.
fn in_doubt(when: &str) -> Result<Vec<String>, Skip> {
    let (scratch, version) = root();
    let fault = format!("fsync:error=EIO:when={when}");
    let mut child = child_with_fault("doubt", scratch.path(), &fault, None)?;
    let output = child.env("OLD_VERSION", version).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

fn doubt() -> Result<(), Skip> {
    // Of the thread for blocking work: the first is the file's, the second the directory's.
    let said = in_doubt("2")?;
    assert_eq!(said[..2], ["Some(InDoubt)", "Some(Precondition)"]);
    assert!(said[2].contains(r#"content: b"new""#), "{said:?}");
    assert_eq!(said[2], said[3]);
    Ok(())
}

fn not_synced() -> Result<(), Skip> {
    // While the directory cannot be synced, what a read would show may be gone after a power cut.
    let said = in_doubt("2+")?;
    assert_eq!(said, ["Some(InDoubt)", "Some(Precondition)", "Unavailable", "Unavailable"]);
    Ok(())
}

fn io_error() -> Result<(), Skip> {
    let (scratch, version) = root();
    let orders = scratch.path().join("orders");
    let said_with = |fault: &str, file: &str| {
        let mut child = child_with_fault("doubt", scratch.path(), fault, Some(&orders.join(file)))?;
        let output = child.env("OLD_VERSION", &version).output().unwrap();
        let store = LocalStore::open(scratch.path()).unwrap();
        assert_eq!(run(found(&store, &key(KEY))).0, b"old", "{fault}");
        assert_eq!(names(&orders), ["lease.json", "lease.json.lock"], "{fault}");
        let said = String::from_utf8(output.stdout).unwrap();
        Ok(said.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    for fault in ["read:error=EIO", "openat:error=EIO", "openat:error=EACCES"] {
        let said = said_with(fault, "lease.json")?;
        assert_eq!(said, ["Some(Unavailable)", "Some(Unavailable)", "Unavailable", "Unavailable"]);
    }
    for fault in ["flock:error=EIO", "openat:error=EACCES"] {
        let said = said_with(fault, "lease.json.lock")?;
        assert_eq!(said[..2], ["Some(Unavailable)", "Some(Unavailable)"], "{fault}");
        assert!(said[2].contains(r#"content: b"old""#), "a read takes no lock: {said:?}");
    }
    Ok(())
}

/// A writer that is late between its lock and its rename, and what is done to it meanwhile.
fn while_a_writer_is_late(meddle: impl FnOnce(&std::path::Path)) -> Result<String, Skip> {
    let (scratch, _) = root();
    // Its first fsync on the writing thread is that of the temporary file, after the lock.
    let fault = "fsync:delay_enter=3000000:when=1";
    let mut child = child_with_fault("replace", scratch.path(), fault, None)?;
    let child = child.stdout(Stdio::piped()).spawn().unwrap();
    let orders = scratch.path().join("orders");
    wait_until("the temporary file is there", || {
        names(&orders).iter().any(|name| name.ends_with(".tmp"))
    });
    meddle(&orders);
    let output = child.wait_with_output().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    assert_eq!(run(found(&store, &key(KEY))).0, b"old");
    Ok(String::from_utf8(output.stdout).unwrap())
}

fn lock_file_removed() -> Result<(), Skip> {
    let said = while_a_writer_is_late(|orders| {
        fs::remove_file(orders.join("lease.json.lock")).unwrap();
    })?;
    assert_eq!(said, "Some(Unavailable)\n");
    Ok(())
}

fn directory_moved() -> Result<(), Skip> {
    let said = while_a_writer_is_late(|orders| {
        // A copy in its place, as a restore would leave it; the writer's handle is on the moved one.
        let moved = orders.with_file_name("moved");
        fs::rename(orders, &moved).unwrap();
        fs::create_dir(orders).unwrap();
        fs::copy(moved.join("lease.json"), orders.join("lease.json")).unwrap();
    })?;
    assert_eq!(said, "Some(Unavailable)\n");
    Ok(())
}
