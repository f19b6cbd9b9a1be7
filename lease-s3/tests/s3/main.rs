//! The driver against a server in this process: the suite, the probe, field cases, faults, leases.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod bad_input;
mod conformance;
mod credentials;
mod dedicated;
mod fenced;
#[cfg(feature = "gcp")]
mod gcs;
mod lease;
mod outcomes;
mod probing;
mod proxy;
#[path = "../../../lease-core/tests/fenced/resource.rs"]
mod resource;
mod rig;
#[path = "../fenced/schedule.rs"]
mod schedule;
mod schedules;
mod tls;
mod wire_count;

use lease_core::{LeaseStore as _, ObjectKey, Read, StoreError, Version};
use lease_s3::{S3Store, testing::TestServer};
use libtest_mimic::{Arguments, Trial};
use std::time::Duration;

/// One test by its name.
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(
            concat!(module_path!(), "::", stringify!($test)).trim_start_matches("s3::"),
            || $crate::within($crate::LIMIT, $test()),
        )),*]
    };
}
pub(crate) use trials;

fn main() {
    let trials: Vec<Trial> = [
        bad_input::trials(),
        conformance::trials(),
        credentials::trials(),
        dedicated::trials(),
        fenced::trials(),
        lease::trials(),
        outcomes::trials(),
        probing::trials(),
        proxy::trials(),
        schedules::trials(),
        tls::trials(),
        wire_count::trials(),
        #[cfg(feature = "gcp")]
        gcs::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a future on a runtime of its own, with the server beside it.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

const LIMIT: Duration = Duration::from_secs(300);

/// A test that waits for what never comes has failed, and says so.
fn within(limit: Duration, test: impl Future<Output = ()>) -> Result<(), libtest_mimic::Failed> {
    run(async { tokio::time::timeout(limit, test).await })
        .map_err(|_| format!("not done within {limit:?}").into())
}

fn key() -> ObjectKey {
    ObjectKey::new("orders/lease.json").unwrap()
}

/// Where the server has it.
const OBJECT: &str = "p/orders/lease.json";

/// A server and a store that was connected to it.
async fn connected() -> (TestServer, S3Store) {
    let server = TestServer::start().await.unwrap();
    let store = server.options("p").connect().await.unwrap();
    assert_eq!(server.keys(), [""; 0], "the probe cleans up");
    let _before = server.take_requests();
    (server, store)
}

/// The same with an object, and its version.
async fn with_object(content: &'static str) -> (TestServer, S3Store, Version) {
    let (server, store) = connected().await;
    let version = store.create_if_absent(&key(), content.into()).await.unwrap();
    let _before = server.take_requests();
    (server, store, version)
}

async fn found(store: &S3Store) -> (bytes::Bytes, Version) {
    match store.read_versioned(&key(), None).await.unwrap() {
        Read::Found { content, version, .. } => (content, version),
        other => panic!("{other:?}"),
    }
}

/// An error's text, which must never hold a secret.
fn text(error: &StoreError) -> String {
    let text = format!("{error} {error:?}");
    assert!(!text.contains("test-secret-key"), "{text}");
    text
}
