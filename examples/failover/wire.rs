//! What the processes say to each other: one JSON object a line, over the child's stdin and stdout.

pub(crate) use crate::processes::moment::Moment;
use fencing::Epoch;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a child tells its parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Say {
    /// The manager runs; from here on the lease is wanted.
    Started { at: Moment },
    /// What the standby sees of the lease.
    Seen { at: Moment, lease: String },
    /// The store is asked for the lease.
    Read { at: Moment },
    /// The standby reads that close behind the renewals, or does not know when they come.
    Phase { at: Moment, behind: Option<Duration> },
    /// The lease is held, the fence still shut.
    TakingOver { at: Moment, epoch: Epoch, predecessor: String, held_back_until: Option<Moment> },
    /// The fence is open. It was not before `not_before`, and shuts by itself at `deadline`.
    Opened { at: Moment, epoch: Epoch, not_before: Moment, deadline: Moment },
    /// A renewal that was sent at `sent` succeeded.
    Renewed { at: Moment, epoch: Epoch, sent: Moment, deadline: Moment },
    /// The fence was checked and found open; the write comes once the parent says so.
    AboutToWrite { at: Moment, epoch: Epoch },
    /// A write to the protected resource, with its token.
    Write { at: Moment, epoch: Epoch },
    /// The fence is shut by now.
    Shut { at: Moment, epoch: Epoch },
    /// The tenure is over.
    Ended { at: Moment, epoch: Epoch, reason: String, released: bool },
    /// The child cannot go on.
    Failed { error: String },
}

/// What the parent tells a child.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub(crate) enum Tell {
    /// The gate admitted the last write.
    Admitted,
    /// The gate refused it.
    Refused,
    /// Stop between the next check and its write, right behind a renewal.
    Pause,
    /// Go on from there.
    Go,
}
