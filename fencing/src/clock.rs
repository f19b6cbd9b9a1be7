//! Time. The only module of the workspace that reads a clock.
//!
//! Two kinds of time exist, as two types that do not mix:
//!
//! - [`MonotonicTime`] never goes back and, where the platform allows, keeps counting while the
//!   machine is suspended. Every deadline is one. It means nothing outside the process (and the
//!   boot) that read it, so it cannot be serialised.
//! - [`WallTime`] is what people call the time. It jumps. It is a floor for new epochs, a label in
//!   records, and a second look at one's *own* deadline; it decides nothing about another instance.
//!
//! | platform | monotonic source | counts in suspend |
//! | --- | --- | --- |
//! | Linux, Android | `CLOCK_BOOTTIME` | yes |
//! | macOS, iOS | `CLOCK_MONOTONIC` (continuous there) | yes |
//! | others | `std::time::Instant` | as the platform has it |
//!
//! No local clock shows that a virtual machine was frozen, migrated or restored from a snapshot.
//! Against that only the token at the resource protects.

use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

/// A point in monotonic time: nanoseconds since an origin that only this process knows.
///
/// Arithmetic saturates at both ends; nothing here overflows or panics.
///
/// ```
/// use fencing::MonotonicTime;
/// use std::time::Duration;
///
/// let sent = MonotonicTime::from_nanos(5_000_000_000);
/// let deadline = sent + Duration::from_secs(20);
/// assert_eq!(deadline - sent, Duration::from_secs(20));
/// assert_eq!(sent - deadline, Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MonotonicTime(u64);

impl MonotonicTime {
    /// The latest point that can be told.
    pub const MAX: Self = Self(u64::MAX);

    /// A point `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How far `self` is behind `later`; zero if it is not behind.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        later - self
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(by)))
    }
}

impl Sub<Duration> for MonotonicTime {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(by)))
    }
}

impl Sub for MonotonicTime {
    type Output = Duration;

    /// The time since `earlier`; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for MonotonicTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", Duration::from_nanos(self.0))
    }
}

/// A point in wall-clock time: nanoseconds since 1970-01-01T00:00:00Z, never negative.
///
/// ```
/// use fencing::WallTime;
///
/// assert_eq!(WallTime::from_unix_seconds(1_790_000_000).unix_seconds(), 1_790_000_000);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(u64);

impl WallTime {
    /// The latest point that can be told.
    pub const MAX: Self = Self(u64::MAX);

    /// A point `nanos` nanoseconds after the Unix epoch.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A point `seconds` seconds after the Unix epoch; saturates in the year 2554.
    #[must_use]
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    #[must_use]
    pub const fn unix_seconds(self) -> u64 {
        self.0 / 1_000_000_000
    }
}

impl Add<Duration> for WallTime {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(by)))
    }
}

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix {}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Both clocks of one machine, read together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Reading {
    /// What every deadline is compared with.
    pub monotonic: MonotonicTime,
    /// The second look at one's own deadline, and the floor for epochs.
    pub wall: WallTime,
}

/// Where time comes from.
///
/// The state machine, the fence and the runner see time only through this trait, so that a test, a
/// simulator or a model checker can drive it. [`SystemClock`] is the real one.
///
/// Services use [`SystemClock`]. Tests bring their own: `testing::ManualClock` moves only when it
/// is told to.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Monotonic time now. Never less than what an earlier call on this clock returned.
    fn monotonic(&self) -> MonotonicTime;

    /// Wall-clock time now. May be anything.
    fn wall(&self) -> WallTime;

    /// Both at once.
    fn reading(&self) -> Reading {
        Reading { monotonic: self.monotonic(), wall: self.wall() }
    }
}

/// The machine's own clocks, suspend-aware where the platform has such a clock.
///
/// ```
/// use fencing::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// let first = clock.monotonic();
/// assert!(clock.monotonic() >= first);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock(());

impl SystemClock {
    /// A handle to the machine's clocks. All handles of one process agree.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> MonotonicTime {
        platform::monotonic()
    }

    fn wall(&self) -> WallTime {
        platform::wall()
    }
}

#[cfg(unix)]
mod platform {
    use super::{MonotonicTime, WallTime};
    use rustix::time::{ClockId, Timespec, clock_gettime};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    const MONOTONIC: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const MONOTONIC: ClockId = ClockId::Monotonic;

    pub(super) fn monotonic() -> MonotonicTime {
        MonotonicTime::from_nanos(nanos(clock_gettime(MONOTONIC)))
    }

    pub(super) fn wall() -> WallTime {
        WallTime::from_unix_nanos(nanos(clock_gettime(ClockId::Realtime)))
    }

    fn nanos(time: Timespec) -> u64 {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }
}

#[cfg(not(unix))]
mod platform {
    use super::{MonotonicTime, WallTime, saturating_nanos};
    use std::{
        sync::OnceLock,
        time::{Duration, Instant, SystemTime, UNIX_EPOCH},
    };

    #[expect(clippy::disallowed_methods, reason = "this module is where time enters")]
    pub(super) fn monotonic() -> MonotonicTime {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let elapsed = ORIGIN.get_or_init(Instant::now).elapsed();
        // A second of headroom, so that no reading is mistaken for the fence's marks near zero.
        MonotonicTime::from_nanos(saturating_nanos(elapsed + Duration::from_secs(1)))
    }

    #[expect(clippy::disallowed_methods, reason = "this module is where time enters")]
    pub(super) fn wall() -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_unix_nanos(saturating_nanos(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let end = MonotonicTime::MAX + Duration::from_secs(1);
        assert_eq!(end, MonotonicTime::MAX);
        assert_eq!(MonotonicTime::from_nanos(1) - Duration::MAX, MonotonicTime::from_nanos(0));
        assert_eq!(WallTime::from_unix_seconds(u64::MAX), WallTime::MAX);
        assert_eq!(WallTime::MAX + Duration::MAX, WallTime::MAX);
    }

    #[test]
    fn the_system_clock_is_monotonic_and_shows_this_century() {
        let clock = SystemClock::new();
        let (a, b) = (clock.reading(), clock.reading());
        assert!(a.monotonic <= b.monotonic);
        assert!(a.wall.unix_seconds() > 1_600_000_000);
    }
}
