//! Shards over real processes: `cargo run --example shards`. Or in a bucket:
//! `… -- --store s3://bucket/prefix?endpoint=…`.
//!
//! The demonstration starts three processes of itself, which share 64 shards by one session each. Then
//! processes are killed, stopped and added, and after each such change it is timed how long it takes
//! until every shard is held again and no process has more than one more than another: at most T + 3R.
//! Every interval in which a process worked on a shard is compared with every other on that shard. What
//! the processes asked of the store is counted, beside what 64 leases of their own would have cost. The
//! exit status is 0 only if there was no overlap, and a balance in time after every change.

mod args;
mod child;
mod counted;
mod display;
mod ledger;
mod member;
mod play;
#[path = "../processes/mod.rs"]
mod processes;
mod wire;

use args::{Args, Command};
use clap::Parser as _;
use lease_core::{Timing, timing::TimingError};
use play::Outcome;
use processes::{
    interrupted,
    place::{Place, PlaceError},
};
use std::{io, process::ExitCode};

/// Why the demonstration did not come to its end.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("it was interrupted; all processes that it started are gone")]
    Interrupted,
    #[error("the operating system refused {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("the store cannot be used: {0}")]
    Place(#[from] PlaceError),
    #[error("--ttl and --renew do not go together: {0}")]
    Timing(#[from] TimingError),
}

impl DemoError {
    /// 2 for what is wrong with the command line, as clap has it.
    const fn status(&self) -> u8 {
        match self {
            Self::Timing(_) => 2,
            Self::Place(error) if error.is_usage() => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => return failed(&DemoError::Io { what: "a runtime", source }),
    };
    match args.command.take() {
        Some(Command::Child(args)) => match runtime.block_on(child::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        None => runtime.block_on(demonstrate(args)).unwrap_or_else(|error| failed(&error)),
    }
}

fn failed(error: &DemoError) -> ExitCode {
    eprintln!("shards: {error}");
    ExitCode::from(error.status())
}

async fn demonstrate(args: Args) -> Result<ExitCode, DemoError> {
    let timing = Timing::short(args.ttl, args.renew)?;
    let (place, _dir) = Place::of_a_run("shards", args.store.as_ref())?;
    // Opened once here, so that what cannot work is told once.
    place.open(&timing).await?;
    let hand = place.hand()?;
    let interrupted = interrupted().map_err(|source| DemoError::Io { what: "signals", source })?;
    let outcome = tokio::select! {
        outcome = play::play(&args, timing, &place) => {
            outcome.map_err(|source| DemoError::Io { what: "a process", source })
        }
        () = interrupted => Err(DemoError::Interrupted),
    };
    if let Err(error) = hand.clear().await {
        eprintln!("shards: what this run wrote stays behind in {place}: {error}");
    }
    let outcome = outcome?;
    display::print(&outcome.to_string());
    let Outcome { overlaps, faults, .. } = outcome;
    Ok(if overlaps == 0 && faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
