//! Two real processes share one lease in a directory, and bad things happen to them:
//! `cargo run --example failover`. Or in a bucket: `… -- --store s3://bucket/prefix?endpoint=…`.
//!
//! The demonstration starts its own processes. In each round one of them becomes active and writes
//! to a protected resource; then it is killed, frozen or stopped, or its lease is deleted or
//! spoilt, and the other takes over. Every takeover is timed against what the protocol promises,
//! every interval in which a fence was open is compared with every other, and the write that a
//! frozen process makes when it wakes must be refused by the resource. The exit status is 0 only
//! if all of that held in every round.

mod args;
mod child;
mod compare;
mod counted;
mod display;
mod ledger;
mod member;
#[path = "../processes/mod.rs"]
mod processes;
mod round;
mod scenario;
mod table;
mod wire;

use args::{Args, Command};
use clap::{Parser as _, ValueEnum as _};
use display::Display;
use futures_util::{StreamExt as _, stream};
use lease_core::{LeaseStore, ObjectKey, StoreError, Timing, key::NameError, timing::TimingError};
use processes::{
    measure::{self, StoreOperations},
    place::{Hand, HandError, Place, PlaceError},
};
use round::{Outcome, RoundId};
use scenario::Scenario;
use std::{
    cell::RefCell, future::Future, io, path::PathBuf, process::ExitCode, sync::Arc, time::Duration,
};
use tempfile::TempDir;

/// Why the demonstration did not come to its end.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("it was interrupted; all processes that it started are gone")]
    Interrupted,
    #[error("the operating system refused {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the store cannot be used: {0}")]
    Place(#[from] PlaceError),
    #[error("a store operation beside the rounds failed: {0}")]
    Store(#[from] StoreError),
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

/// What all rounds share.
struct Setup {
    timing: Timing,
    seed: u64,
    dir: TempDir,
    program: PathBuf,
    display: Display,
    place: Place,
    store: Arc<dyn LeaseStore>,
    hand: Hand,
    /// What lies in the store because of this run.
    written: RefCell<Vec<ObjectKey>>,
    operations: StoreOperations,
}

impl Setup {
    /// No round takes longer, whatever happens in it.
    fn round_limit(&self, id: RoundId) -> Duration {
        let watching = self.timing.renew() * 2 * compare::RENEWALS_MAX;
        (self.timing.ttl() + self.timing.renew()) * 5
            + id.phase_lock.map_or(Duration::ZERO, |_| watching)
            + Duration::from_secs(20)
    }

    /// Removes what this run wrote to a bucket. (A temporary directory goes by itself.)
    async fn clean_up(&self) {
        if let Place::Directory(_) = self.place {
            return;
        }
        for key in self.written.take() {
            match self.hand.remove(&key).await {
                // A round that failed may not have come to write it.
                Ok(()) | Err(HandError::Object(object_store::Error::NotFound { .. })) => {}
                Err(error) => {
                    self.display.say(&format!("{key} stays behind in {}: {error}", self.place));
                }
            }
        }
    }
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    // One thread: all tasks of a process run in turn, which the measurements rely on, and the
    // thread that starts the children lives as long as the process.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => return failed(&DemoError::Io { what: "a runtime", source }),
    };
    let status = match args.command.take() {
        Some(Command::Child(args)) => match runtime.block_on(child::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                child::say(&wire::Say::Failed { error: error.to_string() });
                ExitCode::FAILURE
            }
        },
        None => runtime.block_on(demonstrate(args)).unwrap_or_else(|error| failed(&error)),
    };
    // A read of the standard input may hang for ever.
    runtime.shutdown_background();
    status
}

fn failed(error: &DemoError) -> ExitCode {
    eprintln!("failover: {error}");
    ExitCode::from(error.status())
}

async fn demonstrate(args: Args) -> Result<ExitCode, DemoError> {
    let setup = set_up(&args).await?;
    let scenarios = match args.scenarios.is_empty() {
        _ if args.compare_phase => vec![Scenario::Kill],
        true => Scenario::value_variants().to_vec(),
        false => args.scenarios.clone(),
    };
    introduce(&setup, &scenarios);
    let outcomes = play(&setup, &args, &scenarios).await;
    setup.clean_up().await;
    let outcomes = outcomes?;
    setup.display.close();
    if let Some(path) = &args.results {
        compare::write(&setup, &outcomes, path)
            .map_err(|source| DemoError::Io { what: "to write the results", source })?;
    }
    let (table, notes, holds) = match args.compare_phase {
        true => compare::report(&setup, &outcomes),
        false => {
            let table = table::of(&setup, &scenarios, &outcomes);
            (table, table::notes(&setup, &scenarios), true)
        }
    };
    display::print(&format!("{table}\n{notes}"));
    let summary = table::summary(&outcomes);
    let has_passed = summary.is_ok() && holds;
    display::print(&summary.unwrap_or_else(|summary| summary));
    if has_passed {
        return Ok(ExitCode::SUCCESS);
    }
    if !holds {
        display::print(
            "FAILED: phase lock is not worth what is promised of it. Where many\n\
             renewals came late or rounds were begun anew, the machine was too busy to tell: run it\n\
             again when it is idle",
        );
    }
    display::print(&format!("the same again: --seed {}", setup.seed));
    Ok(ExitCode::FAILURE)
}

async fn play(
    setup: &Setup,
    args: &Args,
    scenarios: &[Scenario],
) -> Result<Vec<Outcome>, DemoError> {
    // Side by side, so that both meet the same machine.
    let locks: &[_] = if args.compare_phase { &[Some(true), Some(false)] } else { &[None] };
    let ids = scenarios.iter().flat_map(|&scenario| {
        let numbers = (1..=args.rounds).flat_map(|number| locks.iter().map(move |it| (number, it)));
        numbers.map(move |(number, &phase_lock)| RoundId { scenario, number, phase_lock })
    });
    let parallel = args.parallel.unwrap_or(if args.compare_phase { 10 } else { 4 });
    let playing = stream::iter(ids)
        .map(|id| round::play(setup, id))
        .buffer_unordered(usize::from(parallel))
        .collect::<Vec<Outcome>>();
    tokio::select! {
        outcomes = playing => Ok(outcomes),
        error = setup.operations.run() => Err(error.into()),
        interrupted = interrupted()? => Err(interrupted),
    }
}

async fn set_up(args: &Args) -> Result<Setup, DemoError> {
    let timing = Timing::short(args.ttl, args.renew)?;
    let (place, dir) = Place::of_a_run("failover", args.store.as_ref())?;
    let store = place.open(&timing).await?;
    let hand = place.hand()?;
    let program = std::env::current_exe()
        .map_err(|source| DemoError::Io { what: "the path of this program", source })?;
    let key = ObjectKey::new(measure::KEY)?;
    let written = RefCell::new(vec![key.clone()]);
    let history = matches!(place, Place::Url(_)).then(|| dir.path().join("history"));
    let operations = StoreOperations::start(Arc::clone(&store), key, history).await?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let display = Display::new();
    Ok(Setup { timing, seed, dir, program, display, place, store, hand, written, operations })
}

fn introduce(setup: &Setup, scenarios: &[Scenario]) {
    let timing = setup.timing;
    setup.display.say(&format!("Two processes, a and b, share a lease in {}", setup.place));
    setup.display.say(&format!(
        "T = {:?}, R = {:?}, margin {:?}; --seed {}",
        timing.ttl(),
        timing.renew(),
        timing.margin(),
        setup.seed,
    ));
    if scenarios.contains(&Scenario::Garbage) {
        setup.display.say(
            "garbage: without a cluster secret both accept a lease that cannot be believed once\n  \
             it is waited out; the default is to abandon such a takeover and report it",
        );
    }
    setup.display.say(&format!("{}\n", setup.display.legend()));
}

/// Ends when the person, or the system, wants this to end.
fn interrupted() -> Result<impl Future<Output = DemoError>, DemoError> {
    let asked = processes::interrupted()
        .map_err(|source| DemoError::Io { what: "to tell of signals", source })?;
    Ok(async move {
        asked.await;
        DemoError::Interrupted
    })
}
