//! Clocks to measure by, and one that a bench moves.

use fencing::{Clock, MonotonicTime, SystemClock, WallTime};
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// What this thread had of the processor.
#[must_use]
pub fn thread_time() -> Duration {
    since_start(ClockId::ThreadCPUTime)
}

/// What this process had of the processor, all its threads together.
#[must_use]
pub fn process_time() -> Duration {
    since_start(ClockId::ProcessCPUTime)
}

/// What has passed since some moment.
#[must_use]
pub fn elapsed() -> Duration {
    SystemClock::new().monotonic() - MonotonicTime::default()
}

fn since_start(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().expect("it is not negative")
}

/// The machine's own clocks, ahead by as much as a bench wants: what is due comes when it is told to,
/// and reading them costs what it costs a service.
#[derive(Clone, Debug, Default)]
pub struct Ahead(Arc<AtomicU64>);

impl Ahead {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(0), Ordering::Relaxed);
    }

    fn by(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for Ahead {
    fn monotonic(&self) -> MonotonicTime {
        SystemClock::new().monotonic() + self.by()
    }

    fn wall(&self) -> WallTime {
        SystemClock::new().wall() + self.by()
    }
}
