//! The instance directory: one process, never forgotten, never believed where it was copied.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

use fencing::Epoch;
use lease_core::{
    history::{Forced, History, HistoryError, InstanceDir, InstanceDirError, MAX_HISTORY_BYTES},
    key::ClusterName,
    record::{Label, Nonce, SnapshotMark, TenureMark, TenureTag, Ttl, Unreadable},
};
use proptest::prelude::*;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// Where a child process finds the directory that it works on.
const CHILD_DIR: &str = "HOLDFAST_TEST_INSTANCE_DIR";

fn cluster(name: &str) -> ClusterName {
    ClusterName::new(name).unwrap()
}

fn orders() -> ClusterName {
    cluster("orders")
}

fn scratch() -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("instance");
    (scratch, path)
}

fn open(path: &Path) -> InstanceDir {
    InstanceDir::open(path).unwrap()
}

fn with_epoch(epoch: u64) -> impl FnOnce(&mut History) {
    move |history| history.last_epoch = Epoch::new(epoch)
}

fn tenure(epoch: u64) -> TenureMark {
    TenureMark { epoch: Epoch::new(epoch).unwrap(), tag: TenureTag::from_bytes([0xaa; 8]) }
}

/// Opens epoch 7 of `orders` and ends the process, as far as the directory can tell.
fn opened_seven(path: &Path) {
    let dir = open(path);
    let opened = dir.opening(tenure(7));
    dir.update(&orders(), |history| history.opened = Some(opened)).unwrap();
}

#[test]
fn the_id_is_generated_once_and_kept() {
    let (_scratch, path) = scratch();
    let first = open(&path);
    assert!(first.is_new());
    let id = first.instance_id().clone();
    assert_eq!(id.as_str().len(), 32);
    drop(first);
    let again = open(&path);
    assert_eq!(again.instance_id(), &id);
    assert!(!again.is_new());
    assert_eq!(fs::metadata(path.join("history.json")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn case_32_the_last_epoch_is_remembered_for_each_cluster() {
    let (_scratch, path) = scratch();
    let dir = open(&path);
    assert!(dir.history(&orders()).is_empty());
    let nonce = Nonce::random().unwrap();
    let ttl = Ttl::new(Duration::from_secs(30)).unwrap();
    dir.update(&orders(), with_epoch(12)).unwrap();
    dir.update(&cluster("stock"), |history| {
        history.last_release = Some(nonce);
        history.seen_authenticated_lease = true;
        history.largest_ttl = Some(ttl);
    })
    .unwrap();
    drop(dir);
    let dir = open(&path);
    assert_eq!(dir.history(&orders()).last_epoch, Epoch::new(12));
    let stock = dir.history(&cluster("stock"));
    assert_eq!((stock.last_release, stock.largest_ttl), (Some(nonce), Some(ttl)));
    assert!(stock.seen_authenticated_lease && stock.last_epoch.is_none());
    assert!(dir.history(&cluster("third")).is_empty());
}

#[test]
fn marks_never_go_down_on_disk() {
    let (_scratch, path) = scratch();
    let dir = open(&path);
    dir.update(&orders(), |history| {
        history.last_epoch = Epoch::new(12);
        history.seen_authenticated_lease = true;
    })
    .unwrap();
    dir.update(&orders(), |history| *history = History::default()).unwrap();
    dir.update(&orders(), with_epoch(3)).unwrap();
    drop(dir);
    let history = open(&path).history(&orders());
    assert_eq!(history.last_epoch, Epoch::new(12));
    assert!(history.seen_authenticated_lease);
}

fn snapshot(second: u32) -> Option<SnapshotMark> {
    let at = Label::new(&format!("2026-10-12T09:58:{second:02}.517Z")).unwrap();
    Some(SnapshotMark { epoch: Epoch::new(7)?, at })
}

#[test]
fn the_marks_of_snapshots_go_down_by_an_operator_only() {
    let (_scratch, path) = scratch();
    let dir = open(&path);
    let both = |dir: &InstanceDir| {
        let history = dir.history(&orders());
        (history.newest_snapshot, history.newest_named_snapshot)
    };
    dir.update(&orders(), |history| {
        history.newest_snapshot = snapshot(30);
        history.newest_named_snapshot = snapshot(40);
    })
    .unwrap();
    dir.update(&orders(), |history| {
        history.newest_snapshot = snapshot(20);
        history.newest_named_snapshot = None;
    })
    .unwrap();
    drop(dir);
    let dir = open(&path);
    assert_eq!(both(&dir), (snapshot(30), snapshot(40)));

    dir.forced_takeover(&orders(), Forced::KeptOwnDatabase).unwrap();
    assert_eq!(both(&dir), (snapshot(30), snapshot(30)));
    dir.forced_takeover(&orders(), Forced::Restored(snapshot(10).unwrap())).unwrap();
    drop(dir);
    let dir = open(&path);
    assert_eq!(both(&dir), (snapshot(10), snapshot(10)));
    dir.update(&orders(), |history| history.newest_snapshot = snapshot(9)).unwrap();
    assert_eq!(both(&dir), (snapshot(10), snapshot(10)), "from here on they go up again");
}

#[test]
fn nothing_is_written_if_nothing_changes() {
    let (_scratch, path) = scratch();
    let dir = open(&path);
    dir.update(&orders(), with_epoch(12)).unwrap();
    let inode = || fs::metadata(path.join("history.json")).unwrap().ino();
    let before = inode();
    dir.update(&orders(), with_epoch(12)).unwrap();
    dir.update(&orders(), with_epoch(11)).unwrap();
    assert_eq!(inode(), before);
}

#[test]
fn a_panic_in_a_change_changes_nothing() {
    let (_scratch, path) = scratch();
    let dir = open(&path);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = dir.update(&orders(), |history| {
            history.last_epoch = Some(Epoch::MAX);
            panic!("on purpose");
        });
    }));
    assert!(panicked.is_err());
    assert!(dir.history(&orders()).is_empty());
    dir.update(&orders(), with_epoch(1)).unwrap();
}

#[test]
fn an_opened_epoch_is_reclaimable_in_the_same_directory_and_boot() {
    let (_scratch, path) = scratch();
    opened_seven(&path);
    let dir = open(&path);
    assert_eq!(dir.reclaimable(&orders()), Some(tenure(7)));
    assert_eq!(dir.history(&orders()).last_epoch, Epoch::new(7));
    assert_eq!(dir.reclaimable(&cluster("stock")), None);
    // Held, but its fence never opened: nothing to take back.
    dir.update(&cluster("stock"), with_epoch(9)).unwrap();
    assert_eq!(dir.reclaimable(&cluster("stock")), None);
    dir.update(&orders(), |history| history.opened = None).unwrap();
    assert_eq!(dir.reclaimable(&orders()), None);
}

#[test]
fn a_copied_directory_reclaims_nothing() {
    let (scratch, path) = scratch();
    opened_seven(&path);
    let copy = scratch.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["history.json", "instance.lock"] {
        fs::copy(path.join(name), copy.join(name)).unwrap();
    }
    let dir = open(&copy);
    assert_eq!(dir.history(&orders()).opened.unwrap().tenure, tenure(7));
    assert_eq!(dir.reclaimable(&orders()), None);
    assert_eq!(open(&path).reclaimable(&orders()), Some(tenure(7)), "the original still does");
}

#[test]
fn another_boot_device_or_inode_reclaims_nothing() {
    let (_scratch, path) = scratch();
    opened_seven(&path);
    let file = path.join("history.json");
    let text = fs::read_to_string(&file).unwrap();
    let value = |field: &str| {
        let start = text.find(&format!("\"{field}\":")).unwrap();
        let end = start + text[start..].find([',', '}']).unwrap();
        text[start..end].to_owned()
    };
    let boot = value("boot_id");
    let changed = [
        (boot.clone(), boot.replace(":\"", ":\"0")),
        (format!("{boot},"), String::new()),
        (value("dev"), format!("{}1", value("dev"))),
        (value("ino"), format!("{}1", value("ino"))),
    ];
    for (old, new) in changed {
        fs::write(&file, text.replacen(&old, &new, 1)).unwrap();
        assert_eq!(open(&path).reclaimable(&orders()), None, "{old} -> {new}");
    }
    fs::write(&file, text).unwrap();
    assert_eq!(open(&path).reclaimable(&orders()), Some(tenure(7)));
}

#[test]
fn a_lock_that_is_lost_writes_and_reclaims_nothing() {
    let (_scratch, path) = scratch();
    opened_seven(&path);
    let first = open(&path);
    fs::remove_file(path.join("instance.lock")).unwrap();
    let second = open(&path);
    assert_ne!(first.lock_identity(), second.lock_identity());
    let error = first.update(&orders(), with_epoch(8)).unwrap_err();
    assert!(matches!(error, HistoryError::LockLost { .. }), "{error}");
    assert_eq!(first.reclaimable(&orders()), None);
    assert_eq!(first.history(&orders()).last_epoch, Epoch::new(7));
    second.update(&orders(), with_epoch(9)).unwrap();
    assert_eq!(second.reclaimable(&orders()), None, "another lock file");
}

#[test]
fn case_16_a_damaged_history_is_refused_and_left_as_it_is() {
    let (_scratch, path) = scratch();
    open(&path).update(&orders(), with_epoch(12)).unwrap();
    let file = path.join("history.json");
    let good = fs::read(&file).unwrap();
    let cut = &good[..good.len() - 3];
    let large = [&good[..], &vec![b' '; MAX_HISTORY_BYTES]].concat();
    for damaged in [&b""[..], &[0; 4096], b"{}", b"[]", b"null", b"\xff", cut, &large] {
        fs::write(&file, damaged).unwrap();
        let error = InstanceDir::open(&path).unwrap_err();
        assert!(matches!(error, InstanceDirError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains("history.json"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), damaged);
    }
    let oversize = Unreadable::TooLarge { bytes_max: MAX_HISTORY_BYTES };
    fs::write(&file, &large).unwrap();
    let error = InstanceDir::open(&path).unwrap_err();
    assert!(
        matches!(error, InstanceDirError::Unreadable { why, .. } if why == oversize),
        "{error}"
    );

    fs::write(&file, b"{\"format\":2}").unwrap();
    let error = InstanceDir::open(&path).unwrap_err();
    assert!(matches!(error, InstanceDirError::TooNew { format: 2, .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"{\"format\":2}");

    fs::write(&file, &good).unwrap();
    assert_eq!(open(&path).history(&orders()).last_epoch, Epoch::new(12));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_history_panics_and_none_is_changed_by_opening_it(
        unit in prop_oneof![
            prop::collection::vec(any::<u8>(), 1..64),
            r#"[\[\]{},:"\\a0u.e+ \-]{1,64}"#.prop_map(String::into_bytes),
        ],
        start in prop_oneof![Just(""), Just(r#"{"format":1,"instance":"s-1","clusters":{"a":{"#)],
        length in 0..=64 * 1024_usize,
    ) {
        let (_scratch, path) = scratch();
        drop(open(&path));
        let file = path.join("history.json");
        let content: Vec<u8> = start.bytes().chain(unit.into_iter().cycle()).take(length).collect();
        fs::write(&file, &content).unwrap();
        let opened = InstanceDir::open(&path);
        prop_assert!(
            matches!(&opened, Ok(_) | Err(InstanceDirError::Unreadable { .. })),
            "{:?}", opened
        );
        prop_assert_eq!(fs::read(&file).unwrap(), content);
    }

    #[test]
    fn no_damaged_history_panics_and_one_that_reads_keeps_its_marks(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (_scratch, path) = scratch();
        opened_seven(&path);
        let file = path.join("history.json");
        let mut content = fs::read(&file).unwrap();
        let at = at.index(content.len());
        content[at] = byte;
        fs::write(&file, &content).unwrap();
        if let Ok(dir) = InstanceDir::open(&path) {
            let before = dir.history(&orders());
            dir.update(&orders(), with_epoch(1)).unwrap();
            let after = dir.history(&orders());
            prop_assert!(after.last_epoch >= before.last_epoch);
            drop(dir);
            prop_assert_eq!(open(&path).history(&orders()), after);
        }
        else {
            prop_assert_eq!(fs::read(&file).unwrap(), content);
        }
    }
}

#[test]
fn case_18_only_a_regular_file_is_a_history_or_a_lock() {
    for name in ["history.json", "instance.lock"] {
        let (scratch, path) = scratch();
        fs::create_dir(&path).unwrap();
        let victim = scratch.path().join("victim");
        fs::write(&victim, r#"{"format":1,"instance":"s-1","clusters":{}}"#).unwrap();
        let before = fs::metadata(&victim).unwrap();
        let file = path.join(name);
        symlink(&victim, &file).unwrap();
        InstanceDir::open(&path).unwrap_err();
        symlink(scratch.path().join("nowhere"), path.join("dangling")).unwrap();
        fs::rename(path.join("dangling"), &file).unwrap();
        InstanceDir::open(&path).unwrap_err();
        fs::remove_file(&file).unwrap();
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        InstanceDir::open(&path).unwrap_err();
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        InstanceDir::open(&path).unwrap_err();
        let after = fs::metadata(&victim).unwrap();
        assert_eq!((before.mtime_nsec(), before.len()), (after.mtime_nsec(), after.len()));
        assert!(!scratch.path().join("nowhere").exists());
    }
}

#[test]
fn only_the_directory_itself_is_created() {
    let (scratch, path) = scratch();
    let error = InstanceDir::open(path.join("deeper")).unwrap_err();
    assert!(matches!(error, InstanceDirError::Read(_)), "{error}");
    assert!(!path.exists());
    fs::write(scratch.path().join("file"), b"").unwrap();
    InstanceDir::open(scratch.path().join("file")).unwrap_err();
    let id = open(&path).instance_id().clone();
    // A symlink to the directory is the operator's choice.
    symlink(&path, scratch.path().join("link")).unwrap();
    assert_eq!(open(&scratch.path().join("link")).instance_id(), &id);
    symlink(scratch.path().join("nowhere"), scratch.path().join("dangling")).unwrap();
    InstanceDir::open(scratch.path().join("dangling")).unwrap_err();
    assert!(!scratch.path().join("nowhere").exists());
}

#[test]
fn a_history_that_would_grow_too_large_is_not_written() {
    let (_scratch, path) = scratch();
    fs::create_dir(&path).unwrap();
    let rest = "x".repeat(MAX_HISTORY_BYTES - 100);
    let text = format!(r#"{{"format":1,"instance":"s-1","clusters":{{}},"later":"{rest}"}}"#);
    fs::write(path.join("history.json"), &text).unwrap();
    let dir = open(&path);
    let error = dir.update(&orders(), with_epoch(u64::MAX)).unwrap_err();
    assert!(matches!(error, HistoryError::Full { .. }), "{error}");
    assert_eq!(fs::read_to_string(path.join("history.json")).unwrap(), text);
    assert!(dir.history(&orders()).is_empty());
}

/// Not a test of its own: what the child processes below run.
#[test]
#[ignore = "run by other tests, in a process of its own"]
fn child_counts_epochs() {
    let Some(path) = std::env::var_os(CHILD_DIR) else { return };
    let dir = match InstanceDir::open(Path::new(&path)) {
        Ok(dir) => dir,
        Err(error) => return println!("\nrefused {error}"),
    };
    println!("\nopened");
    let first = dir.history(&orders()).last_epoch.map_or(1, Epoch::as_u64);
    for epoch in first.. {
        let opened = dir.opening(tenure(epoch));
        dir.update(&orders(), |history| history.opened = Some(opened)).unwrap();
        println!("\nepoch {epoch}");
    }
}

fn child(path: &Path) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_counts_epochs", "--ignored", "--nocapture"])
        .env(CHILD_DIR, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let known = |line: &String| ["opened", "epoch", "refused"].iter().any(|w| line.starts_with(w));
    (child, lines.filter(known))
}

#[test]
fn a_second_process_is_refused_and_told_what_to_do() {
    let (_scratch, path) = scratch();
    let held = open(&path);
    let (mut second, mut lines) = child(&path);
    let refused = lines.next().unwrap();
    assert!(refused.contains("in use by another process"), "{refused}");
    assert!(refused.contains("a directory of its own"), "{refused}");
    assert!(second.wait().unwrap().success());
    drop(held);

    let (mut first, mut lines) = child(&path);
    assert_eq!(lines.next().unwrap(), "opened");
    let error = InstanceDir::open(&path).unwrap_err();
    assert!(matches!(error, InstanceDirError::Busy { .. }), "{error}");
    first.kill().unwrap();
    first.wait().unwrap();
    drop(open(&path));
}

#[test]
fn a_killed_process_leaves_the_old_history_or_the_new_one() {
    let (_scratch, path) = scratch();
    let mut reported = 0;
    for kill in 0..12 {
        let (mut killed, mut lines) = child(&path);
        // SIGKILL lands anywhere in the write after the last that was reported.
        let last = lines.by_ref().take(2 + kill % 5).last().unwrap();
        killed.kill().unwrap();
        killed.wait().unwrap();
        reported = reported.max(last.trim_start_matches("epoch ").parse::<u64>().unwrap());

        let dir = open(&path);
        let on_disk = dir.history(&orders()).last_epoch.unwrap().as_u64();
        assert!(on_disk >= reported, "{on_disk} on disk, {reported} was reported");
        assert_eq!(dir.reclaimable(&orders()), Some(tenure(on_disk)));
        let temporaries = fs::read_dir(&path).unwrap().count() - 2;
        assert_eq!(temporaries, 0, "what the killed process left is swept");
    }
}
