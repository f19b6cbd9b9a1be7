//! The command line.

use crate::{
    processes::{duration, place::Place},
    scenario::Scenario,
};
use clap::{Parser, Subcommand};
use std::{path::PathBuf, time::Duration};

/// Two processes share one lease; the active one is killed, frozen and stopped, and its lease
/// deleted and spoilt, while every takeover is timed and every fence is watched.
#[derive(Parser, Debug)]
#[command(name = "failover")]
pub(crate) struct Args {
    /// Where the leases are kept: a directory on a local disk, or a bucket by its URL, as in
    /// s3://bucket/prefix?endpoint=http://127.0.0.1:9000, with its keys in AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY. What this run writes there it removes. Default: the system's
    /// directory for temporary files.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) store: Option<Place>,

    /// T: how long a lease lives after a renewal, for instance 1.5s, 500ms, 1m.
    #[arg(long, value_name = "DURATION", default_value = "1.5s", value_parser = duration)]
    pub(crate) ttl: Duration,

    /// R: how often it is renewed; below half of T.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration)]
    pub(crate) renew: Duration,

    /// How often each scenario is played.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: u32,

    /// How many rounds are played at a time, each with a lease and two processes of its own.
    /// Default: 4, or 10 in a comparison, where most of the time nothing happens.
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) parallel: Option<u8>,

    /// Chooses when what is done; printed at the start. Default: another one in each run.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Play only this one. May be given several times.
    #[arg(long = "scenario", value_name = "NAME", value_enum)]
    pub(crate) scenarios: Vec<Scenario>,

    /// Kill the active process in as many rounds with phase lock as without, after the standby has
    /// watched it for long, and compare when it takes over and how often it reads.
    #[arg(long, conflicts_with = "scenarios")]
    pub(crate) compare_phase: bool,

    /// Of a comparison, also write every takeover to this file, as `report` of the benches plots it.
    #[arg(long, value_name = "FILE", requires = "compare_phase")]
    pub(crate) results: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// One of the two processes; started by the demonstration itself.
    #[command(hide = true)]
    Child(ChildArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChildArgs {
    #[arg(long)]
    pub(crate) store: Place,
    #[arg(long)]
    pub(crate) cluster: String,
    #[arg(long)]
    pub(crate) instance: PathBuf,
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) ttl_ms: u64,
    #[arg(long)]
    pub(crate) renew_ms: u64,
    /// Told that the cluster is new.
    #[arg(long)]
    pub(crate) first: bool,
    /// Reads the lease every R, whenever it was renewed.
    #[arg(long)]
    pub(crate) no_phase_lock: bool,
    /// The process that started it: without it, it ends.
    #[arg(long)]
    pub(crate) parent: i32,
}
