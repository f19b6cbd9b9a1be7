//! The local driver against its contract, hostile directories, killed processes and failing calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod children;
mod conformance;
mod contract;
mod faults;
mod fenced;
mod hostile;
mod processes;
#[path = "../../../lease-core/tests/fenced/resource.rs"]
mod resource;
#[allow(dead_code, reason = "each of the two binaries that share it uses its part")]
#[path = "../../../fencing/tests/durable/support.rs"]
mod support;
mod syscalls;

use lease_core::{LeaseStore as _, ObjectKey, Read, StoreErrorKind, Version};
use lease_local::LocalStore;
use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Some(mode) = std::env::var_os(support::CHILD) {
        children::be(mode.to_str().unwrap());
        return;
    }
    let trials: Vec<Trial> = [
        conformance::trials(),
        contract::trials(),
        faults::trials(),
        fenced::trials(),
        hostile::trials(),
        processes::trials(),
        syscalls::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a future on a runtime of its own.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Runs a future on a runtime that has one thread for blocking work: a fault that is the second system
/// call of a thread must not meet the first of another.
fn run_on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().max_blocking_threads(1).build().unwrap().block_on(future)
}

/// Runs a future on a runtime whose blocking calls run side by side.
fn run_on_threads<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap().block_on(future)
}

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// Reads an object that is there.
async fn found(store: &LocalStore, key: &ObjectKey) -> (Vec<u8>, Version) {
    match store.read_versioned(key, None).await.unwrap() {
        Read::Found { content, version, age: None } => (content.to_vec(), version),
        other => panic!("{other:?}"),
    }
}

/// The kind of error that each of the three operations meets.
async fn all_three(store: &LocalStore, key: &ObjectKey) -> [Option<StoreErrorKind>; 3] {
    let version = Version::new("v");
    [
        store.read_versioned(key, None).await.err().map(|error| error.kind()),
        store.create_if_absent(key, "new".into()).await.err().map(|error| error.kind()),
        store.replace_if_match(key, "new".into(), &version).await.err().map(|error| error.kind()),
    ]
}

const ALL_UNAVAILABLE: [Option<StoreErrorKind>; 3] = [Some(StoreErrorKind::Unavailable); 3];
