//! Where a snapshot is kept, and which one comes first.
//!
//! ```text
//! _<application>/metadata/ha/<cluster>/<application>-<time>Z-e<epoch>.db.age
//! _<application>/metadata/ha/<cluster>/<application>-<time>Z-e<epoch>-<suffix>.db.age
//!
//! time    20261012T095841.517      UTC, always three decimals, years 1970 to 9999
//! epoch   1 to 2^64 − 1            decimal, no leading zero
//! suffix  16 hexadecimal digits    only where the store cannot create a key only if it is absent
//! ```
//!
//! Each name has one spelling. What is not exactly such a name is no name of a snapshot, and nothing
//! of it is guessed: not a leap second, not another way to write UTC, not a sign or a leading zero.
//!
//! A name is a claim. Only the sealed [header](crate::header) proves it, all of it: epoch, time and
//! suffix.
//!
//! # Two orders
//!
//! [`SnapshotName`] sorts in *takeover order*: what a takeover tries first comes first, that is the
//! highest epoch (as a number), then the newest. [`Mark`] sorts by age: what is older is less.

mod layout;
mod mark;
mod time;

use fencing::Epoch;
pub use layout::{Application, ApplicationError, Layout, MAX_APPLICATION_BYTES};
pub use mark::{Mark, MarkError};
use std::{cmp::Reverse, fmt};
pub use time::{SnapshotTime, TimeError};

/// What a name says of its snapshot: under which epoch it was written, and when.
///
/// **Sorts in takeover order**: the smallest is the first to try.
///
/// ```
/// use snapshot_format::{fencing::Epoch, name::{SnapshotName, SnapshotTime}};
///
/// let name = |epoch, at: &str| -> Result<_, Box<dyn std::error::Error>> {
///     Ok(SnapshotName::new(at.parse()?, Epoch::try_from(epoch)?))
/// };
/// let mut names = [
///     name(9, "2026-01-02T00:00:00.000Z")?,       // newer, of an older epoch
///     name(10, "2025-12-31T00:00:00.000Z")?,
///     name(10, "2025-12-31T00:00:00.001Z")?,
/// ];
/// names.sort();
/// assert_eq!(names.map(|name| name.to_string()), [
///     "20251231T000000.001Z-e10",
///     "20251231T000000.000Z-e10",
///     "20260102T000000.000Z-e9",
/// ]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SnapshotName {
    at: SnapshotTime,
    epoch: Epoch,
    suffix: Option<Suffix>,
}

impl SnapshotName {
    /// The name of the snapshot that was taken at `at` under `epoch`.
    #[must_use]
    pub const fn new(at: SnapshotTime, epoch: Epoch) -> Self {
        Self { at, epoch, suffix: None }
    }

    /// The same with a suffix, for a store that cannot create a key only if it is absent.
    #[must_use]
    pub const fn with_suffix(self, suffix: Suffix) -> Self {
        Self { suffix: Some(suffix), ..self }
    }

    /// When it was taken.
    #[must_use]
    pub const fn at(&self) -> SnapshotTime {
        self.at
    }

    /// The epoch it was written under.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The suffix, if it has one.
    #[must_use]
    pub const fn suffix(&self) -> Option<Suffix> {
        self.suffix
    }

    /// Epoch and time alone: what a lease names, and what high-water marks are made of.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        Mark { epoch: self.epoch, at: self.at }
    }

    /// From `20261012T095841.517Z-e7`, with or without a suffix.
    fn parse(text: &str) -> Option<Self> {
        let (time, rest) = text.split_once("Z-e")?;
        let at = SnapshotTime::from_compact(time)?;
        let (epoch, suffix) = match rest.split_once('-') {
            None => (rest, None),
            Some((epoch, suffix)) => (epoch, Some(Suffix::parse(suffix)?)),
        };
        Some(Self { at, epoch: parse_epoch(epoch)?, suffix })
    }
}

impl Ord for SnapshotName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The suffix only makes the order total.
        let key = |name: &Self| (Reverse(name.mark()), name.suffix);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for SnapshotName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z-e{}", self.at.compact(), self.epoch)?;
        match self.suffix {
            Some(suffix) => write!(f, "-{suffix}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digits alone, without a leading zero, 1 to 2^64 − 1.
fn parse_epoch(digits: &str) -> Option<Epoch> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_plain).and_then(Epoch::new)
}

/// 64 random bits in a key that cannot be created only if it is absent, so that no two writers can
/// have chosen the same. Bound by the header like the rest of the name: a copy under another suffix
/// is a renamed copy.
///
/// ```
/// use snapshot_format::name::Suffix;
///
/// assert_eq!(Suffix::from_bits(0xab).to_string(), "00000000000000ab");
/// assert_eq!("00000000000000ab".parse(), Ok(Suffix::from_bits(0xab)));
/// assert!("AB".parse::<Suffix>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suffix(u64);

impl Suffix {
    /// Fresh random bits.
    ///
    /// # Errors
    ///
    /// If the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        getrandom::u64().map(Self)
    }

    /// A suffix of these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(is_hex) {
            return None;
        }
        u64::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Suffix {
    type Err = SuffixError;

    fn from_str(text: &str) -> Result<Self, SuffixError> {
        Self::parse(text).ok_or(SuffixError)
    }
}

/// A text is no [`Suffix`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the suffix of a snapshot's name is 16 lowercase hexadecimal digits, and this is not")]
pub struct SuffixError;

#[cfg(test)]
mod tests;
