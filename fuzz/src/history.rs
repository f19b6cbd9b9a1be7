//! Arbitrary bytes as the history in an instance directory.

use fencing::Epoch;
use lease_core::{
    history::{History, InstanceDir, InstanceDirError},
    key::ClusterName,
    record::{TenureMark, TenureTag},
};
use serde_json::{Map, Value};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// One directory per process, in memory where that is possible, used again for each input.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let shm = Path::new("/dev/shm");
    let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let path = base.join(format!("holdfast-fuzz-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a scratch directory");
    path
});

/// Opens the directory; what can be read is changed, in part downwards.
pub fn run(data: &[u8]) {
    let file = DIRECTORY.join("history.json");
    fs::write(&file, data).expect("writing the scratch file");
    let opened = InstanceDir::open(&*DIRECTORY);
    assert_eq!(fs::read(&file).expect("it is there"), data, "opening changed it");
    match opened {
        Ok(dir) => changed(dir, data, &file),
        Err(InstanceDirError::Unreadable { .. } | InstanceDirError::TooNew { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

fn changed(dir: InstanceDir, data: &[u8], file: &Path) {
    let (orders, other) = (cluster("orders"), cluster("other"));
    let before = dir.history(&orders);
    let untouched = dir.history(&other);
    let lowest = History { last_epoch: Some(Epoch::MIN), ..History::default() };
    dir.update(&orders, |history| *history = lowest).expect("it is small");
    let after = dir.history(&orders);
    assert_not_lower(&before, &after);

    let higher = after.last_epoch.and_then(|epoch| epoch.next().ok()).unwrap_or(Epoch::MAX);
    let tenure = TenureMark { epoch: higher, tag: TenureTag::from_bytes([9; 8]) };
    let opening = dir.opening(tenure);
    dir.update(&orders, |history| history.opened = Some(opening.clone())).expect("it is small");
    let last = dir.history(&orders);
    assert_not_lower(&after, &last);
    assert_eq!((last.last_epoch, &last.opened), (Some(higher), &Some(opening)));
    assert_eq!(dir.reclaimable(&orders), Some(tenure));

    let id = dir.instance_id().clone();
    drop(dir);
    let again = InstanceDir::open(&*DIRECTORY).expect("what was written reads");
    assert_eq!(again.instance_id(), &id);
    assert!(!again.is_new());
    assert_eq!(again.history(&orders), last);
    assert_eq!(again.history(&other), untouched);
    let written = fs::read(file).expect("it is there");
    assert_eq!(without_orders(data), without_orders(&written), "something else was changed");
}

fn assert_not_lower(before: &History, after: &History) {
    assert!(after.last_epoch >= before.last_epoch, "{before:?} {after:?}");
    assert!(after.seen_authenticated_lease >= before.seen_authenticated_lease);
    assert!(after.newest_snapshot >= before.newest_snapshot);
    assert!(after.newest_named_snapshot >= before.newest_named_snapshot);
}

fn cluster(name: &str) -> ClusterName {
    ClusterName::new(name).expect("a name")
}

/// Everything else in the file, as another reader has it: unknown fields, and the names of the
/// other clusters with what is unknown of them.
fn without_orders(content: &[u8]) -> Map<String, Value> {
    let mut all: Map<String, Value> = serde_json::from_slice(content).expect("it was read");
    let clusters = all.get_mut("clusters").and_then(Value::as_object_mut).expect("it was read");
    clusters.remove("orders");
    for entry in clusters.values_mut() {
        let entry = entry.as_object_mut().expect("it was read");
        // These may be written in another way, or be raised by what else is there.
        for known in [
            "last_epoch",
            "opened",
            "last_release",
            "seen_authenticated_lease",
            "newest_snapshot",
            "newest_named_snapshot",
        ] {
            entry.remove(known);
        }
    }
    all
}
