//! What a snapshot says about itself, under the seal.
//!
//! The plaintext starts with two lines, the database follows right behind the second:
//!
//! ```text
//! <application>-ha-snapshot
//! {"format":1,"cluster":"prod","epoch":7,"instance_id":"a1b2…","created_at":"2026-10-12T09:58:41.517Z"}
//! ```

use crate::name::{SnapshotName, SnapshotTime, Suffix};
use fencing::Epoch;
use lease_core::key::{ClusterName, InstanceId};

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u64 = 1;

/// What a snapshot says about itself. Whoever wrote it held the cluster's secret.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The cluster whose snapshot it is.
    pub cluster: ClusterName,
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// The instance that wrote it.
    pub instance_id: InstanceId,
    /// When it was taken, by that instance's wall clock.
    pub created_at: SnapshotTime,
    /// The suffix of its key, if that has one.
    pub suffix: Option<Suffix>,
}

impl Header {
    /// The one name under which this snapshot is what it says.
    #[must_use]
    pub fn name(&self) -> SnapshotName {
        let name = SnapshotName::new(self.created_at, self.epoch);
        self.suffix.map_or(name, |suffix| name.with_suffix(suffix))
    }
}
