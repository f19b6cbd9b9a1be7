//! When something happened, as the processes of one machine tell each other.

use fencing::{Clock, MonotonicTime, SystemClock};
use serde::{Deserialize, Serialize};
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

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    pub(crate) fn plus(self, by: Duration) -> Self {
        (self.monotonic() + by).into()
    }

    pub(crate) fn minus(self, by: Duration) -> Self {
        (self.monotonic() - by).into()
    }

    pub(crate) const fn monotonic(self) -> MonotonicTime {
        MonotonicTime::from_nanos(self.0)
    }
}

impl From<MonotonicTime> for Moment {
    fn from(time: MonotonicTime) -> Self {
        Self(time.as_nanos())
    }
}
