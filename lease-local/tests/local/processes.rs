//! Many processes increment one counter, and are killed meanwhile.

use crate::{
    children::{KEY, counter, encode},
    found, key, run,
    support::{child, test},
};
use lease_core::LeaseStore as _;
use lease_local::LocalStore;
use libtest_mimic::Trial;
use std::{
    io::Read as _,
    path::Path,
    process::{Child, Stdio},
};

const PROCESSES: u64 = 8;
const INCREMENTS: u64 = 200;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("eight_processes_lose_no_increment", no_increment_is_lost),
        test("killed_processes_lose_no_reported_increment", killed_processes),
    ]
}

fn counting_store(root: &Path) -> LocalStore {
    let store = LocalStore::open(root).unwrap();
    run(store.create_if_absent(&key(KEY), encode(0).into())).unwrap();
    store
}

fn start(root: &Path) -> Child {
    child(&INCREMENTS.to_string(), root).stdout(Stdio::piped()).spawn().unwrap()
}

/// How many increments a process that has ended had been told of as successful.
fn reported(child: &mut Child) -> u64 {
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    assert!(said.iter().all(|byte| *byte == b'+'));
    said.len() as u64
}

fn value(store: &LocalStore) -> u64 {
    counter(&run(found(store, &key(KEY))).0).expect("the counter is whole")
}

fn no_increment_is_lost() {
    let scratch = tempfile::tempdir().unwrap();
    let store = counting_store(scratch.path());
    let mut children: Vec<_> = (0..PROCESSES).map(|_| start(scratch.path())).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
        assert_eq!(reported(child), INCREMENTS);
    }
    assert_eq!(value(&store), PROCESSES * INCREMENTS);
}

fn killed_processes() {
    let scratch = tempfile::tempdir().unwrap();
    let store = counting_store(scratch.path());
    let mut children: Vec<_> = (0..PROCESSES).map(|_| start(scratch.path())).collect();
    let mut random = u64::from(std::process::id()) | 1;
    let (mut told, mut kills, mut last) = (0, 0, 0);
    while kills < 100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Some progress between two kills, seen by somebody who takes no lock.
        let next = last + (random >> 40) % 5;
        while last < next {
            let now = value(&store);
            assert!(now >= last, "the counter went back from {last} to {now}");
            last = now;
            if children.iter_mut().all(|child| child.try_wait().unwrap().is_some()) {
                break;
            }
        }
        let child = &mut children[(random >> 60) as usize % PROCESSES as usize];
        child.kill().unwrap();
        child.wait().unwrap();
        told += reported(child);
        kills += 1;
        *child = start(scratch.path());
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
        told += reported(child);
    }
    let count = value(&store);
    assert!(told <= count, "{told} increments were reported as successful, {count} are there");
    // A process that was killed may have had one that landed and was not told.
    assert!(count <= told + kills, "{count} increments of {told} reported and {kills} kills");
}
