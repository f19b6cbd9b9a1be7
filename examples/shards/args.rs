//! The command line.

use crate::processes::{duration, place::Place};
use clap::{Parser, Subcommand};
use std::time::Duration;

/// Processes share 64 shards, each by one session; processes are killed, stopped and added, every
/// balance is timed, and no shard may be worked on by two.
#[derive(Parser, Debug)]
#[command(name = "shards")]
pub(crate) struct Args {
    /// Where the leases are kept: a directory on a local disk, or a bucket by its URL, as in
    /// s3://bucket/prefix?endpoint=http://127.0.0.1:9000, with its keys in AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY. What this run writes there it removes. Default: the system's
    /// directory for temporary files.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) store: Option<Place>,

    /// T: how long a session lives after a renewal, for instance 1.5s, 500ms, 1m.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    pub(crate) ttl: Duration,

    /// R: how often it is renewed; below half of T.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) renew: Duration,

    /// How many shards there are.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) shards: u16,

    /// How often a process is killed, stopped or added.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) changes: u32,

    /// Chooses what is done when; printed at the start. Default: another one in each run.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// One of the processes; started by the demonstration itself.
    #[command(hide = true)]
    Child(ChildArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChildArgs {
    #[arg(long)]
    pub(crate) store: Place,
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) ttl_ms: u64,
    #[arg(long)]
    pub(crate) renew_ms: u64,
    #[arg(long)]
    pub(crate) shards: u16,
    /// The process that started it: without it, it ends.
    #[arg(long)]
    pub(crate) parent: i32,
}
