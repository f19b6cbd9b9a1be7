//! The command line.

use crate::processes::{duration, place::Place};
use clap::{Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// Clusters of real processes are killed, frozen, partitioned and set to other times for a while. Each
/// process writes what it does into one ledger, which is audited at the end.
#[derive(Parser, Debug)]
#[command(name = "soak")]
pub(crate) struct Args {
    /// How long.
    #[arg(long, default_value_t = 2.0, value_parser = minutes)]
    pub(crate) minutes: f64,

    /// Where the leases are kept: a directory on a local disk, or a bucket by its URL, as in
    /// s3://bucket/prefix?endpoint=http://127.0.0.1:9000, with its keys in the environment. Default: the
    /// system's directory for temporary files.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) store: Option<Place>,

    /// T: how long a lease lives after a renewal.
    #[arg(long, value_name = "DURATION", default_value = "1.5s", value_parser = duration)]
    pub(crate) ttl: Duration,

    /// R: how often it is renewed; below half of T.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration)]
    pub(crate) renew: Duration,

    /// How many clusters at once, of 2, 3 and 4 processes in turn.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) clusters: u16,

    /// It has failed with fewer kills of active processes than this. Default: 1, if there are any to be.
    #[arg(long)]
    pub(crate) kills: Option<u64>,

    /// And with fewer freezes. Default: the same.
    #[arg(long)]
    pub(crate) freezes: Option<u64>,

    /// How many renewals of the active process are seen before it is killed.
    #[arg(long, default_value_t = 20)]
    pub(crate) renewals: u32,

    /// Chooses what is done when; printed at the start. Default: another one in each run.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Do only this. May be given several times.
    #[arg(long, value_enum, value_name = "FAULT")]
    pub(crate) only: Vec<Kind>,

    /// Where the ledger is kept. Default: it is removed if all went well, and else its path is told.
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,

    /// Break the processes, to see that it is found.
    #[arg(long = "break", value_enum, hide = true)]
    pub(crate) broken: Option<Broken>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Args {
    /// How many there have to be.
    pub(crate) fn quota(&self, kind: Kind) -> u64 {
        let asked = match kind {
            Kind::Kill => self.kills,
            Kind::Freeze => self.freezes,
            Kind::Stop | Kind::Jump | Kind::Cut => Some(0),
        };
        asked.unwrap_or(u64::from(self.only.is_empty() || self.only.contains(&kind)))
    }
}

/// What is done to a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// Kill the active process.
    Kill,
    /// Stop it by a signal, and let it go on after less or more than T.
    Freeze,
    /// Let it end gracefully.
    Stop,
    /// Set the wall clock of a process.
    Jump,
    /// Cut, half-open or slow the network of the active process.
    Cut,
}

/// A process that does not keep the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Broken {
    /// It acts on when its tenure is over, and does not ask its fence; there is no gate.
    IgnoreFence,
    /// It asks its fence; the gate lets everything in.
    OpenGate,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// One of the processes; started by the soak itself.
    #[command(hide = true)]
    Child {
        /// What it is to be.
        plan: String,
    },
}

fn minutes(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|it: &f64| *it > 0.0 && *it <= 100_000.0);
    parsed.ok_or_else(|| "give minutes, as in 0.5 or 30".to_owned())
}
