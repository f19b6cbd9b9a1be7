//! The clock of a process whose wall clock is moved.

use fencing::{Clock, MonotonicTime, SystemClock, WallTime};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine's monotonic clock, and the wall clock as the C library tells it.
///
/// `libfaketime` stands in for the C library's `clock_gettime`. `SystemClock` asks the kernel past
/// it, and would never notice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LibraryClock;

impl Clock for LibraryClock {
    fn monotonic(&self) -> MonotonicTime {
        SystemClock::new().monotonic()
    }

    #[expect(clippy::disallowed_methods, reason = "the one clock that libfaketime moves")]
    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
