//! A writer is paused between its check and its write, and refused when it wakes up: by one SQL
//! statement.
//!
//! ```sh
//! cargo run --example fenced_sql
//! ```
//!
//! Here on SQLite; the statements are the same on PostgreSQL, and are tested on both
//! (`docs/fencing.md` says more). To copy into a service: `SCHEMA`, `WRITE`, `RAISE` and `pass`.

use lease_core::fencing::{Epoch, Stale};
use lease_core::{LeaseManager, Timing, machine::FirstStart};
use lease_local::LocalStore;
use rusqlite::{Connection, params};
use std::{
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};
use tokio::sync::oneshot;

type Error = Box<dyn std::error::Error + Send + Sync>;

const DATABASE: &str = "reports.sqlite";
const SCHEMA: &str = "CREATE TABLE report (id TEXT PRIMARY KEY, epoch BIGINT NOT NULL, body TEXT)";
/// Changes one row: admitted. None: stale. One statement, so nobody comes between check and write.
const WRITE: &str = "INSERT INTO report (id, epoch, body) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, body = excluded.body
    WHERE report.epoch <= excluded.epoch";
/// The same at a takeover, before the new holder reads.
const RAISE: &str = "INSERT INTO report (id, epoch) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch
    WHERE report.epoch <= excluded.epoch";

/// What the number of changed rows says.
fn pass(database: &Connection, token: Epoch, changed: usize) -> Result<(), Error> {
    if changed == 1 {
        return Ok(());
    }
    let highest = "SELECT epoch FROM report WHERE id = 'balance'";
    let highest: i64 = database.query_row(highest, [], |row| row.get(0))?;
    Ok(Stale::check(token, Epoch::new(highest.try_into()?))?)
}

fn write(database: &Connection, token: Epoch, body: &str) -> Result<(), Error> {
    let column = i64::try_from(token.as_u64())?; // a token that does not fit is refused, not cut
    pass(database, token, database.execute(WRITE, params!["balance", column, body])?)
}

fn raise(database: &Connection, token: Epoch) -> Result<(), Error> {
    let column = i64::try_from(token.as_u64())?;
    pass(database, token, database.execute(RAISE, params!["balance", column])?)
}

fn read(database: &Connection) -> Result<String, Error> {
    let body = "SELECT body FROM report WHERE id = 'balance'";
    Ok(database.query_row(body, [], |row| row.get(0))?)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scratch = tempfile::tempdir()?;
    let store = LocalStore::open(scratch.path().join("store"))?;
    let database = Connection::open(scratch.path().join(DATABASE))?;
    database.execute_batch(SCHEMA)?;
    let (paused, is_paused) = oneshot::channel();
    let (wake, woken) = mpsc::channel();
    let (of_a, dir) = (store.clone(), scratch.path().to_owned());
    let a = std::thread::spawn(move || writer_that_is_paused(of_a, &dir, paused, woken));
    if is_paused.await.is_err() {
        return a.join().map_err(|_| "a panicked")?;
    }

    println!("b  waits until a's lease has lapsed");
    let lease = start(store, scratch.path().join("b")).await?;
    let tenure = lease.acquire().await?;
    let fence = tenure.fence();
    println!("b  took over under epoch {}", fence.epoch());
    raise(&database, fence.epoch())?; // before it reads: what it reads is a's last word
    println!("b  raised the row, which says {:?}, and goes on from that", read(&database)?);
    fence.check()?;
    write(&database, fence.epoch(), "balance 70")?;
    println!("b  wrote \"balance 70\"");

    wake.send(())?;
    a.join().map_err(|_| "a panicked")??;
    println!("   the row says {:?}", read(&database)?);
    tenure.release().await;
    lease.stop().await;
    Ok(())
}

/// Instance a. It has a runtime of its own, which stands still with it, as a frozen process does.
#[tokio::main(flavor = "current_thread")]
async fn writer_that_is_paused(
    store: LocalStore,
    dir: &Path,
    paused: oneshot::Sender<()>,
    woken: mpsc::Receiver<()>,
) -> Result<(), Error> {
    let database = Connection::open(dir.join(DATABASE))?;
    let lease = start(store, dir.join("a")).await?;
    let tenure = lease.acquire().await?;
    let fence = tenure.fence();
    write(&database, fence.epoch(), "balance 100")?;
    println!("a  holds the lease under epoch {}, and wrote \"balance 100\"", fence.epoch());

    fence.check()?; // it may act, now
    println!("a  checked its fence: open. It is paused right before its next statement");
    let _ = paused.send(());
    woken.recv()?; // no renewal either: the whole instance stands still

    println!("a  wakes up, knows nothing, and writes \"balance 90\"");
    match write(&database, fence.epoch(), "balance 90") {
        Ok(()) => println!("a  was admitted: THIS MUST NOT HAPPEN"),
        Err(refused) => println!("a  is refused: {refused}"),
    }
    if let Err(shut) = fence.check() {
        println!("a  would have known, had it looked again: {shut}");
    }
    Ok(())
}

async fn start(store: LocalStore, instance: PathBuf) -> Result<LeaseManager, Error> {
    let builder = LeaseManager::builder(store, "orders")
        .timing(Timing::short(Duration::from_millis(1500), Duration::from_millis(500))?)
        .instance_dir(instance) // of this instance alone
        .first_start(FirstStart::Immediate); // the cluster is new: nobody to wait for
    Ok(builder.start().await?)
}
