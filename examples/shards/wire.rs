//! What a process tells the one that started it: one JSON object a line.

use fencing::{Clock as _, Epoch, SystemClock};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A reading of the suspend-aware clock. All processes run on one machine and one boot, so that
/// the readings of one mean something to another; between machines they would not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(SystemClock::new().monotonic().as_nanos())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Say {
    /// Work on a shard begins.
    Begin { at: Moment, shard: u16, epoch: Epoch },
    /// It has ended; `lost` if the session had ended under it.
    End { at: Moment, shard: u16, epoch: Epoch, lost: bool },
    /// How many requests it has sent to the store so far.
    Requests { count: u64 },
}

/// One line, with its end.
pub(crate) fn encode(say: &Say) -> String {
    // A plain enum of numbers: there is nothing in it that JSON cannot say.
    serde_json::to_string(say).map(|line| line + "\n").unwrap_or_default()
}

/// `None`: not a line of this protocol.
pub(crate) fn decode(line: &str) -> Option<Say> {
    serde_json::from_str(line).ok()
}
