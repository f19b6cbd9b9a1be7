//! How new a snapshot is.

use super::{SnapshotTime, TimeError};
use fencing::Epoch;
use lease_core::record::{Label, SnapshotMark};
use std::fmt;

/// How new a snapshot is: its epoch, then its time. What is older is less.
///
/// ```
/// use snapshot_format::{fencing::Epoch, lease_core::record::SnapshotMark, name::Mark};
///
/// let old = Mark { epoch: Epoch::new(9).unwrap(), at: "2026-01-02T00:00:00.000Z".parse()? };
/// let new = Mark { epoch: Epoch::new(10).unwrap(), at: "2025-12-31T00:00:00.000Z".parse()? };
/// assert!(old < new);                             // the epoch decides, as a number
///
/// let in_the_lease = SnapshotMark::from(new);
/// assert_eq!(&*in_the_lease.at, "2025-12-31T00:00:00.000Z");
/// assert_eq!(Mark::try_from(&in_the_lease)?, new);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    // The order of the fields is the order of marks.
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// When it was taken.
    pub at: SnapshotTime,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under epoch {}", self.at, self.epoch)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:?}", self.at, self.epoch)
    }
}

impl From<Mark> for SnapshotMark {
    fn from(mark: Mark) -> Self {
        let at = Label::new(&mark.at.to_string()).expect("a time is a short text");
        Self { epoch: mark.epoch, at }
    }
}

impl TryFrom<&SnapshotMark> for Mark {
    type Error = MarkError;

    fn try_from(mark: &SnapshotMark) -> Result<Self, MarkError> {
        let at = mark.at.parse().map_err(|source| MarkError { at: mark.at.clone(), source })?;
        Ok(Self { epoch: mark.epoch, at })
    }
}

/// A lease names a last snapshot by a time that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the lease names a last snapshot at {at:?}, which cannot be compared with any; see the cause"
)]
pub struct MarkError {
    /// What it says.
    pub at: Label,
    /// Why it is no time.
    pub source: TimeError,
}
