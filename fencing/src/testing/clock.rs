use crate::clock::{Clock, MonotonicTime, Reading, WallTime};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A clock that moves only when it is told to.
///
/// Clones share the same time. It starts at monotonic +1000 s and wall 2026-01-01T00:00:00Z.
///
/// ```
/// use fencing::{Clock, testing::ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.reading();
/// clock.advance(Duration::from_secs(3));
/// clock.jump_wall(-3600);                                  // set back by an hour
/// let after = clock.reading();
/// assert_eq!(after.monotonic - before.monotonic, Duration::from_secs(3));
/// assert_eq!(after.wall.unix_seconds(), before.wall.unix_seconds() + 3 - 3600);
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: Reading,
    /// Local nanoseconds per million true ones.
    rate_ppm: u64,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// A clock at its starting point.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(Reading {
            monotonic: MonotonicTime::from_nanos(1_000_000_000_000),
            wall: WallTime::from_unix_seconds(1_767_225_600),
        })
    }

    /// A clock that shows `now`.
    #[must_use]
    pub fn starting_at(now: Reading) -> Self {
        Self { state: Arc::new(Mutex::new(State { now, rate_ppm: 1_000_000 })) }
    }

    /// Lets `true_time` pass; the clock shows it at its own [rate](Self::set_rate).
    pub fn advance(&self, true_time: Duration) {
        let mut state = self.lock();
        let nanos = true_time.as_nanos() * u128::from(state.rate_ppm) / 1_000_000;
        let local = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        state.now.monotonic = state.now.monotonic + local;
        state.now.wall = state.now.wall + local;
    }

    /// Moves the monotonic clock to `then`, the wall clock by the same amount. Never back.
    pub fn advance_to(&self, then: MonotonicTime) {
        let mut state = self.lock();
        let by = then - state.now.monotonic;
        state.now.monotonic = state.now.monotonic.max(then);
        state.now.wall = state.now.wall + by;
    }

    /// From now on the clock shows `ppm` millionths of the time that passes (1 080 000 is 8 % fast).
    pub fn set_rate(&self, ppm: u64) {
        self.lock().rate_ppm = ppm;
    }

    /// Sets the wall clock forward, or back if negative. The monotonic clock does not move.
    pub fn jump_wall(&self, seconds: i64) {
        let mut state = self.lock();
        let nanos = i128::from(state.now.wall.unix_nanos()) + i128::from(seconds) * 1_000_000_000;
        let nanos = u64::try_from(nanos.max(0)).unwrap_or(u64::MAX);
        state.now.wall = WallTime::from_unix_nanos(nanos);
    }

    /// A suspend on a platform whose monotonic clock stands still meanwhile: `standing` is what it
    /// shows of the `slept` time. The wall clock shows all of it.
    pub fn suspend(&self, slept: Duration, standing: Duration) {
        let mut state = self.lock();
        state.now.monotonic = state.now.monotonic + standing;
        state.now.wall = state.now.wall + slept;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> MonotonicTime {
        self.lock().now.monotonic
    }

    fn wall(&self) -> WallTime {
        self.lock().now.wall
    }

    fn reading(&self) -> Reading {
        self.lock().now
    }
}
