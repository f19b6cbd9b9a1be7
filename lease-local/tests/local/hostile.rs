//! Directories that are planted, closed, full or not what they seem.

use crate::{
    ALL_UNAVAILABLE, all_three, found, key, run,
    support::{Mount, Skip, child, names, skippable, test},
};
use lease_core::{LeaseStore as _, Read, StoreErrorKind};
use lease_local::{LocalStore, OpenError};
use libtest_mimic::Trial;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Output},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("case_15_an_unknown_file_system_is_refused_by_name", unknown_file_system),
        skippable("case_15_tmpfs_is_fine", tmpfs),
        skippable("case_15_what_is_mounted_below_the_root_is_looked_at_too", mounted_below),
        test("case_16_empty_and_zeroed_objects_are_there", empty_objects),
        skippable("case_16_no_permission_is_not_missing", no_permission),
        skippable("case_16_a_root_that_may_not_be_written_is_refused", not_writable),
        skippable("case_17_a_full_disk_leaves_the_object_unchanged", full_disk),
        skippable("case_17_a_read_only_disk_leaves_the_store_unavailable", read_only),
        test("case_17_stale_temporary_files_are_ignored_and_removed", stale_temporaries),
        test("case_18_planted_symlinks_are_not_followed", symlinks),
        test("case_18_a_fifo_does_not_block", fifos),
    ]
}

fn unknown_file_system() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let error = LocalStore::open("/proc/self").unwrap_err();
    assert!(matches!(error, OpenError::UnknownFileSystem { .. }), "{error}");
    assert!(error.to_string().contains("0x9fa0"), "{error}");
    let error = LocalStore::options("/proc/self").allow_unknown_file_systems(true).open();
    assert!(!matches!(error, Err(OpenError::UnknownFileSystem { .. })), "{error:?}");
}

fn tmpfs() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=64k")?;
    LocalStore::open(mount.path()).map(|_| ()).map_err(|error| panic!("{error}"))
}

fn mounted_below() -> Result<(), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    let orders = scratch.path().join("orders");
    fs::create_dir(&orders).unwrap();
    let mounted = Command::new("mount").args(["-t", "proc", "proc"]).arg(&orders).output();
    if !mounted.is_ok_and(|done| done.status.success()) {
        return Err(Skip("cannot mount procfs here (not root?)".into()));
    }
    let store = LocalStore::open(scratch.path()).unwrap();
    let met = run(all_three(&store, &key("orders/lease")));
    assert!(Command::new("umount").arg(&orders).status().unwrap().success());
    assert_eq!(met, ALL_UNAVAILABLE);
    run(store.create_if_absent(&key("orders/lease"), "x".into())).unwrap();
    Ok(())
}

fn empty_objects() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    for content in [vec![], vec![0; 4096]] {
        fs::write(scratch.path().join("lease"), &content).unwrap();
        let (read, version) = run(found(&store, &key("lease")));
        assert_eq!(read, content);
        let created = run(store.create_if_absent(&key("lease"), "new".into()));
        assert_eq!(created.unwrap_err().kind(), StoreErrorKind::Precondition);
        run(store.replace_if_match(&key("lease"), "new".into(), &version)).unwrap();
    }
}

fn as_nobody(mode: &str, path: &Path) -> Result<Output, Skip> {
    let skip = || Skip("cannot run a child under another uid here".into());
    if !rustix::process::geteuid().is_root() {
        return Err(skip());
    }
    let binary = std::env::current_exe().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&binary);
    let plain = child(mode, path);
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().map_err(|_| skip())?;
    // 127 and 126: setpriv is there, but the binary is where the other uid may not go.
    if matches!(output.status.code(), Some(126 | 127)) { Err(skip()) } else { Ok(output) }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

fn no_permission() -> Result<(), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    open_to_all(scratch.path());
    let closed = scratch.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    for file in ["lease.json", "lease.json.lock"] {
        fs::write(scratch.path().join(file), b"").unwrap();
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(scratch.path().join(file), mode).unwrap();
    }
    let output = as_nobody("all three", scratch.path())?;
    let expected = format!("{ALL_UNAVAILABLE:?}\n").repeat(2);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    assert_eq!(names(scratch.path()), ["closed", "lease.json", "lease.json.lock"]);
    assert!(names(&closed).is_empty());
    Ok(())
}

fn not_writable() -> Result<(), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = as_nobody("open", scratch.path())?.stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("cannot be written") && said.contains("this process's user"), "{said}");
    let mount = Mount::tmpfs("size=16k")?;
    mount.remount("ro");
    let error = LocalStore::open(mount.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error}");
    Ok(())
}

fn full_disk() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=16k")?;
    let store = LocalStore::open(mount.path()).unwrap();
    let version = run(store.create_if_absent(&key("lease"), "old".into())).unwrap();
    fs::write(mount.path().join("filler"), vec![1; 8 * 1024]).unwrap();
    let error = run(store.replace_if_match(&key("lease"), vec![7; 6000].into(), &version));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("make room"), "{error}");
    assert!(error.to_string().contains("No space left"), "{error}");
    let error = run(store.create_if_absent(&key("other"), vec![7; 6000].into())).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(run(found(&store, &key("lease"))), (b"old".to_vec(), version));
    assert_eq!(names(mount.path()), ["filler", "lease", "lease.lock", "other.lock"]);
    Ok(())
}

fn read_only() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=16k")?;
    let store = LocalStore::open(mount.path()).unwrap();
    let version = run(store.create_if_absent(&key("lease"), "old".into())).unwrap();
    mount.remount("ro");
    let error = run(store.replace_if_match(&key("lease"), "new".into(), &version)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert_eq!(run(found(&store, &key("lease"))), (b"old".to_vec(), version));
    Ok(())
}

fn stale_temporaries() {
    let scratch = tempfile::tempdir().unwrap();
    let stale = scratch.path().join(".lease.0123456789abcdef.tmp");
    fs::write(&stale, b"half").unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    assert_eq!(run(store.read_versioned(&key("lease"), None)).unwrap(), Read::Missing);
    run(store.create_if_absent(&key("lease"), "new".into())).unwrap();
    assert_eq!(names(scratch.path()), ["lease", "lease.lock"]);
}

fn symlinks() {
    for planted in ["orders", "orders/lease.json", "orders/lease.json.lock"] {
        let scratch = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("lease.json");
        fs::write(&victim, b"precious").unwrap();
        let state = || {
            let meta = fs::metadata(&victim).unwrap();
            (fs::read(&victim).unwrap(), meta.mode(), meta.mtime(), meta.mtime_nsec())
        };
        let before = state();
        let store = LocalStore::open(scratch.path()).unwrap();
        let key = key("orders/lease.json");
        let link = scratch.path().join(planted);
        if planted == "orders" {
            symlink(outside.path(), &link).unwrap();
        } else {
            fs::create_dir(scratch.path().join("orders")).unwrap();
            symlink(&victim, &link).unwrap();
        }
        let met = run(all_three(&store, &key));
        let expected = if planted.ends_with(".lock") {
            // A read takes no lock.
            [None, ALL_UNAVAILABLE[1], ALL_UNAVAILABLE[2]]
        } else {
            ALL_UNAVAILABLE
        };
        assert_eq!(met, expected, "{planted}");
        assert_eq!(state(), before, "{planted}");
        assert_eq!(names(outside.path()), ["lease.json"]);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is left alone");
    }
}

fn fifos() {
    for planted in ["lease", "lease.lock"] {
        let scratch = tempfile::tempdir().unwrap();
        let store = LocalStore::open(scratch.path()).unwrap();
        let fifo = scratch.path().join(planted);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // One that blocked would hang here for ever.
        let met = run(all_three(&store, &key("lease")));
        assert_eq!(met[1..], ALL_UNAVAILABLE[1..], "{planted}");
        assert_eq!(met[0].is_none(), planted == "lease.lock");
    }
}
