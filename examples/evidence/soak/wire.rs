//! What a process is told at its start, and what it and its parent say to each other.

use crate::args::Broken;
pub(crate) use crate::processes::moment::Moment;
use fencing::Epoch;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// What a process is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// As `--store` takes it.
    pub(crate) store: String,
    pub(crate) cluster: String,
    pub(crate) instance: String,
    /// Where the instance keeps what it remembers.
    pub(crate) dir: PathBuf,
    pub(crate) ttl: Duration,
    pub(crate) renew: Duration,
    /// Told that the cluster is new.
    pub(crate) is_first: bool,
    pub(crate) ledger: PathBuf,
    pub(crate) gate: PathBuf,
    /// The process that started it: without it, it ends.
    pub(crate) parent: i32,
    pub(crate) broken: Option<Broken>,
}

/// What a process tells its parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Say {
    /// The manager runs.
    Started,
    /// The lease was seen.
    Seen,
    /// The fence is open.
    Opened { epoch: Epoch },
    /// The first write of the tenure took effect.
    Acted { at: Moment, epoch: Epoch },
    /// A renewal of an open tenure succeeded.
    Renewed { epoch: Epoch },
    /// The fence was checked and found open; the write comes once the parent says so.
    AboutToWrite { epoch: Epoch },
    /// The gate refused a write.
    Refused,
    /// The tenure is over.
    Ended { epoch: Epoch, reason: String },
    /// The wall clock moved by itself, by so many seconds.
    Jumped { seconds: i64 },
    /// It cannot go on.
    Failed { error: String },
}

/// What the parent tells a process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub(crate) enum Tell {
    /// Stop between the next check and its write.
    Pause,
    /// Go on from there.
    Go,
}
