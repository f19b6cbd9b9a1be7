//! The clocks of one simulated host: of their own rate, and set back and forth, over one true time.

use super::{dice::Dice, hazards::Setting};
use fencing::{Clock, MonotonicTime, Reading, WallTime};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The time that nobody in the world can read: what really passes.
#[derive(Clone, Debug, Default)]
pub(super) struct TrueTime {
    nanos: Arc<AtomicU64>,
}

impl TrueTime {
    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, now: Duration) {
        self.nanos.store(nanos(now), Ordering::Relaxed);
    }
}

/// Both clocks of one host. Clones show the same.
#[derive(Clone, Debug)]
pub(super) struct HostClock {
    true_time: TrueTime,
    frame: Arc<Mutex<Frame>>,
    /// The wall clock stands still, for a fence that lacks its second look.
    is_wall_hidden: bool,
}

/// What the clocks showed at one true time, and how they go on from there.
#[derive(Clone, Copy, Debug)]
struct Frame {
    at: u64,
    monotonic: u64,
    wall: u64,
    /// Monotonic nanoseconds per million true ones. The wall clock is disciplined: it keeps to true
    /// time between two settings.
    rate_ppm: u64,
    /// The host is suspended, and its monotonic clock does not count meanwhile.
    stands: bool,
}

impl Frame {
    fn at(self, now: u64) -> Self {
        let passed = now.saturating_sub(self.at);
        let monotonic = match self.stands {
            true => 0,
            false => scaled(passed, self.rate_ppm, 1_000_000),
        };
        Self { at: now, monotonic: self.monotonic + monotonic, wall: self.wall + passed, ..self }
    }
}

impl HostClock {
    /// Clocks that start now: monotonic at `uptime`, the wall clock at `wall`.
    pub(super) fn new(
        true_time: &TrueTime,
        uptime: Duration,
        wall: WallTime,
        rate_ppm: u64,
    ) -> Self {
        let at = nanos(true_time.now());
        let frame = Frame {
            at,
            monotonic: nanos(uptime),
            wall: wall.unix_nanos(),
            rate_ppm,
            stands: false,
        };
        Self {
            true_time: true_time.clone(),
            frame: Arc::new(Mutex::new(frame)),
            is_wall_hidden: false,
        }
    }

    /// The clocks of a host that is new in a world.
    pub(super) fn drawn(true_time: &TrueTime, setting: &Setting, dice: &mut Dice) -> Self {
        let rate = setting.rate(dice);
        let offset = dice.up_to(setting.wall_offset);
        let wall = WallTime::from_unix_seconds(1_767_225_600) + true_time.now() + offset;
        let uptime = Duration::from_secs(10) + dice.up_to(Duration::from_secs(10_000));
        Self::new(true_time, uptime, wall, rate)
    }

    /// The same monotonic clock beside a wall clock that shows nothing.
    pub(super) fn without_wall(&self) -> Self {
        Self { is_wall_hidden: true, ..self.clone() }
    }

    /// The true time at which the monotonic clock shows `then`; `None` while it stands still.
    pub(super) fn when(&self, then: MonotonicTime) -> Option<Duration> {
        let frame = *self.lock();
        if frame.stands {
            return None;
        }
        let left = then.as_nanos().saturating_sub(frame.monotonic);
        let passes = scaled(left, 1_000_000, frame.rate_ppm);
        // Rounding down may have lost a nanosecond on each side.
        let exact = if scaled(passes, frame.rate_ppm, 1_000_000) < left { 1 } else { 0 };
        Some(Duration::from_nanos(frame.at.saturating_add(passes + exact)))
    }

    /// From now on it shows `ppm` millionths of the time that passes.
    pub(super) fn set_rate(&self, ppm: u64) {
        self.change(|frame| frame.rate_ppm = ppm);
    }

    /// From now on the monotonic clock stands still, or goes on.
    pub(super) fn set_standing(&self, stands: bool) {
        self.change(|frame| frame.stands = stands);
    }

    /// Sets the wall clock forward, or back if negative.
    pub(super) fn jump_wall(&self, millis: i64) {
        self.change(|frame| {
            let by = i128::from(millis) * 1_000_000;
            let wall = (i128::from(frame.wall) + by).max(0);
            frame.wall = u64::try_from(wall).unwrap_or(u64::MAX);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Frame)) {
        let mut frame = self.lock();
        *frame = frame.at(nanos(self.true_time.now()));
        change(&mut frame);
    }

    fn lock(&self) -> MutexGuard<'_, Frame> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for HostClock {
    fn monotonic(&self) -> MonotonicTime {
        self.reading().monotonic
    }

    fn wall(&self) -> WallTime {
        self.reading().wall
    }

    fn reading(&self) -> Reading {
        let frame = self.lock().at(nanos(self.true_time.now()));
        let wall = if self.is_wall_hidden { 0 } else { frame.wall };
        Reading {
            monotonic: MonotonicTime::from_nanos(frame.monotonic),
            wall: WallTime::from_unix_nanos(wall),
        }
    }
}

fn scaled(value: u64, by: u64, over: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(over.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_a_time_exactly_when_it_says_that_it_will() {
        for rate in [920_000, 999_999, 1_000_000, 1_080_000] {
            let time = TrueTime::default();
            time.set(Duration::from_nanos(12_345_678_901));
            let wall = WallTime::from_unix_seconds(1_000);
            let clock = HostClock::new(&time, Duration::from_secs(7), wall, rate);
            for ahead in [1, 999, 1_000_000_007, 123_456_789_123] {
                let then = clock.monotonic() + Duration::from_nanos(ahead);
                let when = clock.when(then).unwrap();
                time.set(when - Duration::from_nanos(1));
                assert!(clock.monotonic() < then, "rate {rate}, {ahead} ns ahead");
                time.set(when);
                assert!(clock.monotonic() >= then, "rate {rate}, {ahead} ns ahead");
            }
        }
    }

    #[test]
    fn in_a_suspend_the_wall_clock_alone_goes_on() {
        let time = TrueTime::default();
        let clock = HostClock::new(
            &time,
            Duration::from_secs(1),
            WallTime::from_unix_seconds(50),
            1_000_000,
        );
        clock.set_standing(true);
        assert_eq!(clock.when(MonotonicTime::MAX), None);
        time.set(Duration::from_secs(9));
        clock.set_standing(false);
        clock.jump_wall(-2_000);
        assert_eq!(clock.monotonic().as_nanos(), 1_000_000_000);
        assert_eq!(clock.wall().unix_seconds(), 57);
    }
}
