//! A clock that follows tokio's time, which a test can pause.

use fencing::{Clock, MonotonicTime, Reading, WallTime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// A clock that follows tokio's time. In a test whose time is paused (`start_paused = true`), a
/// manager that is given this clock runs through minutes at once, and always the same way.
///
/// Clones share suspends and jumps. It starts at monotonic +1000 s and wall 2026-01-01T00:00:00Z.
///
/// ```
/// use lease_core::{fencing::Clock, testing::TokioClock};
/// use std::{sync::Arc, time::Duration};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let clock = TokioClock::new();
/// let before = clock.monotonic();
/// tokio::time::sleep(Duration::from_secs(60)).await;          // takes no time at all
/// assert_eq!(clock.monotonic() - before, Duration::from_secs(60));
/// clock.suspend(Duration::from_secs(3600));                   // tokio's timers stand still meanwhile
/// assert_eq!(clock.monotonic() - before, Duration::from_secs(3660));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TokioClock {
    origin: Instant,
    offsets: Arc<Offsets>,
}

#[derive(Debug, Default)]
struct Offsets {
    suspended_nanos: AtomicU64,
    wall_seconds: AtomicI64,
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl TokioClock {
    /// A clock at its starting point.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this clock is about tokio's time")]
    pub fn new() -> Self {
        Self { origin: Instant::now(), offsets: Arc::default() }
    }

    /// The machine is suspended for so long: both clocks move, tokio's timers do not.
    pub fn suspend(&self, slept: Duration) {
        let nanos = u64::try_from(slept.as_nanos()).unwrap_or(u64::MAX);
        self.offsets.suspended_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Sets the wall clock forward, or back if negative.
    pub fn jump_wall(&self, seconds: i64) {
        self.offsets.wall_seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    #[expect(clippy::disallowed_methods, reason = "this clock is about tokio's time")]
    fn elapsed(&self) -> Duration {
        let suspended = self.offsets.suspended_nanos.load(Ordering::SeqCst);
        (Instant::now() - self.origin) + Duration::from_nanos(suspended)
    }
}

impl Clock for TokioClock {
    fn monotonic(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(1_000_000_000_000) + self.elapsed()
    }

    fn wall(&self) -> WallTime {
        let jumped = self.offsets.wall_seconds.load(Ordering::SeqCst);
        let start = WallTime::from_unix_seconds(1_767_225_600_u64.saturating_add_signed(jumped));
        start + self.elapsed()
    }

    fn reading(&self) -> Reading {
        Reading { monotonic: self.monotonic(), wall: self.wall() }
    }
}
