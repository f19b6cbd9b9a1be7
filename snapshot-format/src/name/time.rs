//! The time in a name, in a header and in a lease: one moment, one spelling each.

use fencing::WallTime;
use jiff::{
    SignedDuration,
    civil::{self, DateTime},
};
use std::{fmt, str::FromStr};

const EPOCH: DateTime = civil::datetime(1970, 1, 1, 0, 0, 0, 0);
/// How a moment is written in a header and in a lease, and in a name.
const EXTENDED: &[u8] = b"dddd-dd-ddTdd:dd:dd.dddZ";
const COMPACT: &[u8] = b"ddddddddTdddddd.ddd";

/// When a snapshot was taken: UTC in whole milliseconds, from 1970 to the end of 9999.
///
/// It has one spelling, `2026-10-12T09:58:41.517Z`, and is the writer's own wall clock, which
/// nothing compares with another clock: it orders the snapshots of one epoch, and tells people when.
///
/// ```
/// use snapshot_format::name::SnapshotTime;
///
/// let at: SnapshotTime = "2026-10-12T09:58:41.517Z".parse()?;
/// assert_eq!(at.to_string(), "2026-10-12T09:58:41.517Z");
/// for bad in ["2026-10-12T23:59:60.000Z", "2026-10-12T09:58:41.517+00:00", "10000-01-01T00:00:00.000Z"] {
///     assert!(bad.parse::<SnapshotTime>().is_err());
/// }
/// # Ok::<(), snapshot_format::name::TimeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotTime {
    // In UTC, not before 1970, without a fraction of a millisecond.
    moment: DateTime,
}

impl SnapshotTime {
    /// The earliest, the start of 1970.
    pub const MIN: Self = Self { moment: EPOCH };
    /// The latest, a millisecond before the year 10000.
    pub const MAX: Self = Self { moment: civil::datetime(9999, 12, 31, 23, 59, 59, 999_000_000) };

    /// What a wall clock showed, cut to the millisecond.
    #[must_use]
    pub fn from_wall(wall: WallTime) -> Self {
        let millis = i64::try_from(wall.unix_nanos() / 1_000_000).unwrap_or(i64::MAX);
        let moment = EPOCH.saturating_add(SignedDuration::from_millis(millis));
        Self { moment }.min(Self::MAX)
    }

    /// The next millisecond; the latest stays as it is.
    #[must_use]
    pub fn next(self) -> Self {
        let moment = self.moment.saturating_add(SignedDuration::from_millis(1));
        Self { moment }.min(Self::MAX)
    }

    /// From `20261012T095841.517`.
    pub(super) fn from_compact(text: &str) -> Option<Self> {
        Self::read(text, COMPACT)
    }

    /// As `20261012T095841.517`.
    pub(super) fn compact(self) -> impl fmt::Display {
        self.moment.strftime("%Y%m%dT%H%M%S.%3f")
    }

    fn read(text: &str, shape: &[u8]) -> Option<Self> {
        let fits = |(byte, shape): (u8, &u8)| match shape {
            b'd' => byte.is_ascii_digit(),
            literal => byte == *literal,
        };
        if text.len() != shape.len() || !text.bytes().zip(shape).all(fits) {
            return None;
        }
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
        let number =
            |from, to| digits[from..to].iter().fold(0, |n, d| n * 10 + i32::from(d - b'0'));
        let small = |from| i8::try_from(number(from, from + 2)).ok();
        let date =
            civil::Date::new(i16::try_from(number(0, 4)).ok()?, small(4)?, small(6)?).ok()?;
        let nanos = number(14, 17) * 1_000_000;
        // Its range of seconds ends at 59: a leap second is no time.
        let time = civil::Time::new(small(8)?, small(10)?, small(12)?, nanos).ok()?;
        Some(Self { moment: date.to_datetime(time) }).filter(|at| *at >= Self::MIN)
    }
}

impl fmt::Display for SnapshotTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ"))
    }
}

impl fmt::Debug for SnapshotTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SnapshotTime {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::read(text, EXTENDED).ok_or(TimeError)
    }
}

/// A text is no [`SnapshotTime`]. It is not repeated here: it may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a time of the form 2026-10-12T09:58:41.517Z, from 1970 to 9999, in this one spelling")]
pub struct TimeError;
