//! What a listed object is, and what it is worth.

use crate::{
    cipher::Unopenable,
    header::{BadHeader, Header},
    name::{SnapshotName, SnapshotTime},
};
use fencing::{Epoch, WallTime};
use object_store::path::Path;
use std::sync::Arc;

/// One stored version of one object that is named like a snapshot.
///
/// Everything here is what the store says; nothing of it is proved.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ListedSnapshot {
    /// What its name says.
    pub name: SnapshotName,
    /// Its key.
    pub key: Path,
    /// Its size in bytes, sealed.
    pub size: u64,
    /// When the store says that this version was written, by the store's clock.
    pub modified: WallTime,
    /// The store's tag of this version, where it has one.
    pub etag: Option<String>,
}

/// What one stored version of a snapshot is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A holder of the cluster's secret wrote it, under this very name.
    Verified(Header),
    /// It is not what its name says, or nobody who holds the secret wrote it. It is never restored,
    /// never deleted, and proves no epoch.
    Refused(Refusal),
    /// It cannot be told now. It may be the newest snapshot.
    Unchecked(Uncheckable),
    /// A holder of the secret wrote it, before snapshots had headers: nothing proves its name.
    Legacy,
}

impl Verdict {
    /// The header, if it is verified.
    #[must_use]
    pub fn verified(&self) -> Option<&Header> {
        match self {
            Self::Verified(header) => Some(header),
            _ => None,
        }
    }

    /// Whether it shows that a version which writes headers wrote snapshots of this cluster: it is
    /// verified, a renamed copy, or of a newer format. From then on [`Legacy`](Self::Legacy)
    /// snapshots are not to be trusted.
    #[must_use]
    pub fn shows_a_header(&self) -> bool {
        match self {
            Self::Verified(_) => true,
            Self::Refused(why) => why.shows_a_header(),
            Self::Unchecked(why) => matches!(why, Uncheckable::NewerFormat { .. }),
            Self::Legacy => false,
        }
    }
}

/// Why a snapshot is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Its header names another cluster.
    #[error("it is a snapshot of another cluster")]
    OtherCluster,
    /// Its header names another epoch than its name: a renamed copy.
    #[error("it was written under epoch {header}, which is not in its name")]
    OtherEpoch {
        /// The epoch in the header.
        header: Epoch,
    },
    /// Its header names another time than its name: a renamed copy.
    #[error("it was written at {header}, which is not in its name")]
    OtherTime {
        /// The time in the header.
        header: SnapshotTime,
    },
    /// Its header names another suffix than its name: a renamed copy.
    #[error("it was written under a key with another suffix")]
    OtherSuffix,
    /// It starts as a snapshot of another application does.
    #[error("it is a snapshot of another application")]
    OtherApplication,
    /// It has the first line of a header, and not the second.
    #[error("its header is damaged: {why}")]
    BadHeader {
        /// What is wrong with it.
        why: BadHeader,
    },
    /// The cluster's secret does not open its start.
    #[error("the cluster's secret does not open it: {why}")]
    DoesNotOpen {
        /// What is wrong with it.
        why: Unopenable,
    },
}

impl Refusal {
    /// Whether it shows an authenticated header of this cluster all the same.
    #[must_use]
    pub fn shows_a_header(&self) -> bool {
        match self {
            Self::OtherEpoch { .. }
            | Self::OtherTime { .. }
            | Self::OtherSuffix
            | Self::BadHeader { .. } => true,
            Self::OtherCluster | Self::OtherApplication | Self::DoesNotOpen { .. } => false,
        }
    }
}

/// Why it cannot be told what a snapshot is worth.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncheckable {
    /// The store failed. Asked again, it may answer.
    #[error("the store failed to read it: {0}")]
    Store(#[source] Arc<object_store::Error>),
    /// It changed, or is gone, since it was listed. The next listing tells.
    #[error("it changed, or is gone, since it was listed")]
    Changed,
    /// A newer version wrote it.
    #[error("it has format {format}, which this version cannot read; upgrade this instance")]
    NewerFormat {
        /// Its format.
        format: u64,
    },
}

impl PartialEq for Uncheckable {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Store(ours), Self::Store(theirs)) => ours.to_string() == theirs.to_string(),
            (Self::Changed, Self::Changed) => true,
            (Self::NewerFormat { format }, Self::NewerFormat { format: other }) => format == other,
            _ => false,
        }
    }
}

impl Eq for Uncheckable {}
