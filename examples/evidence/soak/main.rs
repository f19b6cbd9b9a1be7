//! Clusters of real processes under faults, and a ledger of what they did, which is audited:
//! `cargo run --release --example soak -- --minutes 30 --kills 500 --freezes 200`. On a bucket:
//! `… -- --store 's3://bucket/prefix?endpoint=http://…' --ttl 3s --renew 1s`.
//!
//! Active processes are killed (after at least 20 renewals), frozen for less and for more than T,
//! anywhere and between check and write, stopped, set to other wall-clock times by `libfaketime`, and,
//! on a bucket, cut off, half-open, slow or without answers, by a proxy of each process. Every process
//! appends its tenures and its writes, with what fence and gate said, to one ledger, which
//! `lease_core::audit` judges. Takeovers are timed from the fault to the first write of the next, and
//! compared with what the protocol promises.
//!
//! The last line is `kills=… freezes=… cuts=… jumps=… overlaps=…`. The status is 1 if something
//! overlapped or could not be proved, a takeover was late, a process failed, or there were fewer kills
//! or freezes than asked for. What cannot be done here is told as skipped, by name.

mod args;
mod book;
mod child;
mod clock;
mod cluster;
mod display;
mod faketime;
mod faults;
mod member;
#[path = "../../processes/mod.rs"]
mod processes;
mod proxy;
mod rounds;
mod setup;
mod tally;
mod wire;

use args::{Args, Command, Kind};
use clap::Parser as _;
use cluster::Cluster;
use display::print;
use futures_util::future::join_all;
use lease_core::audit::{Auditor, Report, Verdict};
use processes::moment::Moment;
use setup::{Setup, SoakError};
use std::{fs::File, io::BufReader, process::ExitCode, time::Duration};

fn main() -> ExitCode {
    let mut args = Args::parse();
    // One thread, which lives as long as the process: the children die with it.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => return failed(&SoakError::Io { what: "a runtime", source }),
    };
    let status = match args.command.take() {
        Some(Command::Child { plan }) => match runtime.block_on(child::run(&plan)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                child::say(&wire::Say::Failed { error: error.to_string() });
                ExitCode::FAILURE
            }
        },
        None => runtime.block_on(soak(&args)).unwrap_or_else(|error| failed(&error)),
    };
    // A read of the standard input may hang for ever.
    runtime.shutdown_background();
    status
}

fn failed(error: &SoakError) -> ExitCode {
    eprintln!("soak: {error}");
    ExitCode::from(error.status())
}

async fn soak(args: &Args) -> Result<ExitCode, SoakError> {
    let setup = Setup::new(args).await?;
    let mut clusters = Vec::new();
    for number in 0..args.clusters {
        clusters.push(setup.cluster(number).await?);
    }
    setup.introduce(args);
    let until = Moment::now().plus(Duration::from_secs_f64(args.minutes * 60.0));
    let interrupted = processes::interrupted()
        .map_err(|source| SoakError::Io { what: "to tell of signals", source })?;
    let soaking = join_all(clusters.iter_mut().map(|cluster| one(cluster, until)));
    tokio::select! {
        _ = soaking => {}
        error = setup.operations.run() => return Err(error.into()),
        () = interrupted => return Err(SoakError::Interrupted),
    }
    drop(clusters);
    setup.clean_up().await;
    setup.display.close();
    let report = audit(&setup)?;
    Ok(conclude(args, setup, &report))
}

/// One cluster, to the end of the time or to its own.
async fn one(cluster: &mut Cluster<'_>, until: Moment) {
    let soaked = cluster.soak(until).await;
    if let Err(error) = &soaked {
        cluster.fault(&error.to_string());
    }
    cluster.close(soaked.is_err()).await;
}

fn audit(setup: &Setup) -> Result<Report, SoakError> {
    let unread = |source| SoakError::Io { what: "the ledger", source };
    let ledger = File::open(&setup.ledger).map_err(unread)?;
    let mut auditor = Auditor::new().torn_lines_are_last_words();
    auditor.read(BufReader::new(ledger)).map_err(unread)?;
    Ok(auditor.finish())
}

/// Says how it came out.
fn conclude(args: &Args, setup: Setup, report: &Report) -> ExitCode {
    let tally = setup.tally.borrow();
    print(&report.to_string());
    print(&tally.takeovers(setup.bound()));
    print(&tally.others());
    for skipped in &setup.skipped {
        print(&format!("skipped: {skipped}"));
    }
    let mut failures = tally.faults.clone();
    if report.verdict() != Verdict::Proved {
        failures
            .push("the audit of the ledger proves nothing, or the contrary: see above".to_owned());
    }
    for (what, done, asked) in [
        ("kills", tally.kills, args.quota(Kind::Kill)),
        ("freezes", tally.freezes, args.quota(Kind::Freeze)),
    ] {
        if done < asked {
            failures.push(format!("{done} {what}, and {asked} were asked for"));
        }
    }
    for failure in &failures {
        print(&format!("FAILED: {failure}"));
    }
    print(&tally.closing(report.overlaps()));
    drop(tally);
    let has_passed = failures.is_empty();
    if !has_passed {
        setup.keep_the_ledger();
    }
    ExitCode::from(u8::from(!has_passed))
}
