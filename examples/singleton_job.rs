//! A job that must run once across replicas. Start it in two terminals, or in ten:
//!
//! ```sh
//! cargo run --example singleton_job -- --name a
//! cargo run --example singleton_job -- --name b
//! ```
//!
//! One of them runs the job; the others stand by, and one takes over when it is stopped or killed.
//! To copy into a service: `main`, with a store and names that fit, and `run_jobs`, with the job
//! in the place of `Resource`. What the job writes to must refuse tokens of the past, as that does.

use clap::Parser;
use lease_core::fencing::{Clock as _, Epoch, FileGate, SystemClock, durable};
use lease_core::{LeaseManager, Tenure, Timing};
use lease_local::LocalStore;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Runs a job on a schedule, on one of all the replicas that share a directory.
#[derive(Parser)]
struct Args {
    /// The name of this replica alone.
    #[arg(long)]
    name: String,
    /// What all replicas share. Default: in the system's directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How often the job runs, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "5000")]
    every: std::num::NonZeroU32,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // what is waited for, how long
    let Args { name, dir, every } = Args::parse();
    let dir = dir.unwrap_or_else(|| std::env::temp_dir().join("holdfast-singleton-job"));
    std::fs::create_dir_all(&dir)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let lease = LeaseManager::builder(LocalStore::open(dir.join("store"))?, "report")
        .timing(Timing::short(Duration::from_secs(3), Duration::from_secs(1))?) // else 30 s, 10 s
        .instance_dir(dir.join(format!("instance-{name}"))) // of this replica alone
        .instance_name(&name)
        .start()
        .await?;
    let resource =
        Resource { gate: FileGate::open(dir.join("gate"))?, last: dir.join("last-period") };
    let every = every.get().into();
    tokio::try_join!(
        // A standby until the lease is ours; after a tenure that was lost, a standby again.
        lease.run_while_active(|tenure| run_jobs(tenure, &resource, &name, every)),
        async {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            lease.stop().await; // a run under way ends; released, so another takes over at once
            Ok(())
        },
    )?;
    Ok(())
}

/// One run in each period of the wall clock, for as long as the tenure lasts.
async fn run_jobs(tenure: Arc<Tenure>, resource: &Resource, name: &str, every: u64) {
    let (fence, lost) = (tenure.fence(), tenure.lost());
    while !lost.is_cancelled() {
        if let Err(shut) = fence.check() {
            return eprintln!("{shut}"); // before every run: is the lease still ours, now?
        }
        let now = SystemClock::new().reading().wall.unix_nanos() / 1_000_000;
        let period = now / every;
        // The token goes with what the job writes. Renewals go on meanwhile, on other threads.
        match tokio::task::block_in_place(|| resource.record(fence.epoch(), period)) {
            Ok(true) => println!("{name} ran period {period} under epoch {}", fence.epoch()),
            Ok(false) => {} // another replica did, before this one took over
            Err(error) => eprintln!("period {period} did not run: {error}"),
        }
        let next = Duration::from_millis(every - now % every);
        let _ = tokio::time::timeout(next, lost.cancelled()).await; // or sooner, if it is lost
    }
}

/// Stands for what the job writes to, with a gate that refuses tokens of the past; in a database:
/// `UPDATE report SET … WHERE epoch <= $epoch AND period < $period`.
struct Resource {
    gate: FileGate,
    last: PathBuf,
}

impl Resource {
    /// Whether this period was still to run. Nobody else is admitted meanwhile.
    fn record(&self, epoch: Epoch, period: u64) -> Result<bool, Error> {
        let _admitted = self.gate.admit(epoch)?;
        if let Some(durable::Content::Whole(last)) = durable::read_bounded(&self.last, 100)?
            && serde_json::from_slice::<u64>(&last)? >= period
        {
            return Ok(false);
        }
        durable::replace(&self.last, &serde_json::to_vec(&period)?)?;
        Ok(true)
    }
}
