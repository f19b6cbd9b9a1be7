//! What the processes say to each other: one JSON object a line, over the child's stdin and stdout.

use fencing::{Clock, Epoch, MonotonicTime, SystemClock};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;

/// A reading of the suspend-aware clock. All processes run on one machine and one boot, so that
/// the readings of one mean something to another; between machines they would not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Self {
        SystemClock::new().monotonic().into()
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn plus(self, by: Duration) -> Self {
        (self.monotonic() + by).into()
    }

    pub(crate) fn minus(self, by: Duration) -> Self {
        (self.monotonic() - by).into()
    }

    const fn monotonic(self) -> MonotonicTime {
        MonotonicTime::from_nanos(self.0)
    }
}

impl From<MonotonicTime> for Moment {
    fn from(time: MonotonicTime) -> Self {
        Self(time.as_nanos())
    }
}

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

/// One line, with its end.
pub(crate) fn encode(message: &impl Serialize) -> String {
    // Plain enums of numbers and strings: there is nothing in them that JSON cannot say.
    serde_json::to_string(message).map(|line| line + "\n").unwrap_or_default()
}

/// `None`: not a line of this protocol.
pub(crate) fn decode<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}
