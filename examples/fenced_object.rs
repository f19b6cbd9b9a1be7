//! A writer is paused between its check and its write, and refused when it wakes up: by the object.
//!
//! ```sh
//! cargo run --example fenced_object
//! ```
//!
//! Two instances share a lease and an object, here in one directory; a bucket does as well (`S3Store`).
//! To copy into a service: the `seal` right after a takeover, and the token in each `put`.

use lease_core::{LeaseManager, ObjectKey, Timing, fenced::FencedObject, machine::FirstStart};
use lease_local::LocalStore;
use std::{path::PathBuf, sync::mpsc, time::Duration};
use tokio::sync::oneshot;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scratch = tempfile::tempdir()?;
    let store = LocalStore::open(scratch.path().join("store"))?;
    let (paused, is_paused) = oneshot::channel();
    let (wake, woken) = mpsc::channel();
    let (of_a, dir_of_a) = (store.clone(), scratch.path().join("a"));
    let a = std::thread::spawn(move || writer_that_is_paused(of_a, dir_of_a, paused, woken));
    if is_paused.await.is_err() {
        return a.join().map_err(|_| "a panicked")?;
    }

    println!("b  waits until a's lease has lapsed");
    let lease = start(store.clone(), scratch.path().join("b")).await?;
    let tenure = lease.acquire().await?;
    let (fence, object) = (tenure.fence(), object(store)?);
    println!("b  took over under epoch {}", fence.epoch());
    // Before it goes on from anything: what a has in flight can land no more.
    let sealed = object.seal_until_certain(fence.epoch(), Duration::from_secs(1)).await?;
    let found = String::from_utf8_lossy(&sealed.content.unwrap_or_default()).into_owned();
    println!("b  sealed the object, which says {found:?}, and goes on from that");
    fence.check()?;
    object.put(fence.epoch(), "balance 70").await?;
    println!("b  wrote \"balance 70\"");

    wake.send(())?;
    a.join().map_err(|_| "a panicked")??;
    let last = object.read().await?.and_then(|current| current.content).unwrap_or_default();
    println!("   the object says {:?}", String::from_utf8_lossy(&last));
    tenure.release().await;
    lease.stop().await;
    Ok(())
}

/// Instance a. It has a runtime of its own, which stands still with it, as a frozen process does.
#[tokio::main(flavor = "current_thread")]
async fn writer_that_is_paused(
    store: LocalStore,
    instance: PathBuf,
    paused: oneshot::Sender<()>,
    woken: mpsc::Receiver<()>,
) -> Result<(), Error> {
    let lease = start(store.clone(), instance).await?;
    let tenure = lease.acquire().await?;
    let (fence, object) = (tenure.fence(), object(store)?);
    object.put(fence.epoch(), "balance 100").await?;
    println!("a  holds the lease under epoch {}, and wrote \"balance 100\"", fence.epoch());

    fence.check()?; // it may act, now
    println!("a  checked its fence: open. It is paused right before its next write");
    let _ = paused.send(());
    woken.recv()?; // no renewal either: the whole instance stands still

    println!("a  wakes up, knows nothing, and writes \"balance 90\"");
    match object.put(fence.epoch(), "balance 90").await {
        Ok(_) => println!("a  was admitted: THIS MUST NOT HAPPEN"),
        Err(refused) => println!("a  is refused: {refused}"),
    }
    if let Err(shut) = fence.check() {
        println!("a  would have known, had it looked again: {shut}");
    }
    Ok(())
}

fn object(store: LocalStore) -> Result<FencedObject, Error> {
    Ok(FencedObject::new(store, ObjectKey::new("orders/balance")?))
}

async fn start(store: LocalStore, instance: PathBuf) -> Result<LeaseManager, Error> {
    let builder = LeaseManager::builder(store, "orders")
        .timing(Timing::short(Duration::from_millis(1500), Duration::from_millis(500))?)
        .instance_dir(instance) // of this instance alone
        .first_start(FirstStart::Immediate); // the cluster is new: nobody to wait for
    Ok(builder.start().await?)
}
