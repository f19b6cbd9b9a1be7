//! The fencing token.

use std::{fmt, num::NonZeroU64};

/// The number of one tenure, and the fencing token that its writes carry.
///
/// Epochs only grow: every tenure has a larger one than all before it. Zero is no epoch, and the
/// largest has no successor (an epoch never wraps).
///
/// With the feature `serde` an epoch is a JSON integer, exact over its whole range; `7.0`, `1e3`,
/// `"7"`, `0`, negative numbers and numbers above 2^64 − 1 are refused.
///
/// ```
/// use fencing::Epoch;
///
/// let epoch = Epoch::new(9_007_199_254_740_993).unwrap();       // 2^53 + 1
/// assert_eq!(epoch.next()?.as_u64(), 9_007_199_254_740_994);
/// assert!(Epoch::MAX.next().is_err());
/// assert!(Epoch::new(0).is_none());
/// # Ok::<(), fencing::token::EpochsExhausted>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(NonZeroU64);

impl Epoch {
    /// The smallest epoch, 1.
    pub const MIN: Self = Self(NonZeroU64::MIN);
    /// The largest epoch, 2^64 − 1. It has no successor.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// The epoch with this number; `None` for zero.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0.get()
    }

    /// The next epoch.
    ///
    /// # Errors
    ///
    /// [`EpochsExhausted`] at the maximum: epochs never wrap.
    pub const fn next(self) -> Result<Self, EpochsExhausted> {
        match self.0.checked_add(1) {
            Some(number) => Ok(Self(number)),
            None => Err(EpochsExhausted),
        }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u64> for Epoch {
    type Error = ZeroEpoch;

    fn try_from(number: u64) -> Result<Self, ZeroEpoch> {
        Self::new(number).ok_or(ZeroEpoch)
    }
}

impl From<Epoch> for u64 {
    fn from(epoch: Epoch) -> u64 {
        epoch.as_u64()
    }
}

/// There is no epoch above 2^64 − 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no epoch is left above 2^64 - 1: no further tenure can begin under this key; move the lease \
     and everything that it protects to a new cluster name"
)]
pub struct EpochsExhausted;

/// Zero was given where an epoch is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("0 is no epoch: the first one is 1")]
pub struct ZeroEpoch;

#[cfg(feature = "serde")]
mod wire {
    use super::Epoch;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    impl Serialize for Epoch {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u64(self.as_u64())
        }
    }

    impl<'de> Deserialize<'de> for Epoch {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let number = u64::deserialize(deserializer)?;
            Self::new(number).ok_or_else(|| D::Error::custom("0 is no epoch"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epoch_has_no_successor() {
        assert_eq!(Epoch::MAX.next(), Err(EpochsExhausted));
        assert_eq!(Epoch::new(u64::MAX - 1).unwrap().next(), Ok(Epoch::MAX));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn case_33_epochs_are_exact_json_integers() {
        let above = Epoch::new((1 << 53) + 1).unwrap();
        let text = serde_json::to_string(&above).unwrap();
        assert_eq!(text, "9007199254740993");
        assert_eq!(serde_json::from_str::<Epoch>(&text).unwrap(), above);
        for bad in ["18446744073709551616", "7.0", "1e3", "-1", "\"7\"", "true", "0", "null"] {
            assert!(serde_json::from_str::<Epoch>(bad).is_err(), "{bad} was taken for an epoch");
        }
    }
}
