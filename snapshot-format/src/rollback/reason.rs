//! Why it was decided so.

use std::fmt;

/// Why a takeover is refused. [`as_str`](Self::as_str) is its name in metrics and logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Only snapshots without a header are left, although one with a header existed.
    LegacyAfterUpgrade,
    /// There was no lease, although there was a cluster.
    LeaseMissing,
    /// An older genuine lease was put back: a verified snapshot has a higher epoch.
    LeaseReplayed,
    /// The lease lags more than one snapshot: an older genuine one was put back.
    LeaseStale,
    /// The lease cannot be believed.
    LeaseUntrusted,
    /// Nothing to restore, although somebody held the lease.
    NoSnapshot,
    /// The operator's snapshot is not there.
    OverrideNotFound,
    /// The operator's snapshot is not genuine.
    OverrideRefused,
    /// The operator's own database is not there.
    OverrideWithoutDatabase,
    /// The newest snapshot is older than one that a lease named.
    SnapshotBehindLease,
    /// The newest snapshot is older than one that this instance wrote or restored.
    SnapshotBehindLocal,
    /// A snapshot that may be the newest cannot be checked.
    SnapshotUnchecked,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::LegacyAfterUpgrade,
        Self::LeaseMissing,
        Self::LeaseReplayed,
        Self::LeaseStale,
        Self::LeaseUntrusted,
        Self::NoSnapshot,
        Self::OverrideNotFound,
        Self::OverrideRefused,
        Self::OverrideWithoutDatabase,
        Self::SnapshotBehindLease,
        Self::SnapshotBehindLocal,
        Self::SnapshotUnchecked,
    ];

    /// Its name, one word for ever.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LegacyAfterUpgrade => "legacy_after_upgrade",
            Self::LeaseMissing => "lease_missing",
            Self::LeaseReplayed => "lease_replayed",
            Self::LeaseStale => "lease_stale",
            Self::LeaseUntrusted => "lease_untrusted",
            Self::NoSnapshot => "no_snapshot",
            Self::OverrideNotFound => "override_not_found",
            Self::OverrideRefused => "override_refused",
            Self::OverrideWithoutDatabase => "override_without_database",
            Self::SnapshotBehindLease => "snapshot_behind_lease",
            Self::SnapshotBehindLocal => "snapshot_behind_local",
            Self::SnapshotUnchecked => "snapshot_unchecked",
        }
    }

    /// Whether somebody may be rolling the application back: to be alerted, and settled by an
    /// operator alone.
    #[must_use]
    pub const fn is_suspected_rollback(self) -> bool {
        matches!(
            self,
            Self::LegacyAfterUpgrade
                | Self::LeaseMissing
                | Self::LeaseReplayed
                | Self::LeaseStale
                | Self::LeaseUntrusted
                | Self::SnapshotBehindLease
                | Self::SnapshotBehindLocal
        )
    }

    /// Whether trying again in a moment may help: a store failed. (A newer format does not pass by
    /// itself, but an upgraded instance takes over then.)
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(self, Self::SnapshotUnchecked)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LegacyAfterUpgrade => {
                "only snapshots without a header are left, although newer ones existed"
            }
            Self::LeaseMissing => "there was no lease, although the cluster is not new",
            Self::LeaseReplayed => "the lease is older than a snapshot: an old one was put back",
            Self::LeaseStale => {
                "the lease does not know the two newest snapshots: it is an old one"
            }
            Self::LeaseUntrusted => "the lease cannot be believed",
            Self::NoSnapshot => "there is no snapshot to take over from",
            Self::OverrideNotFound => "the snapshot that the operator named is not there",
            Self::OverrideRefused => "the snapshot that the operator named is not genuine",
            Self::OverrideWithoutDatabase => {
                "the database that the operator wants kept is not there"
            }
            Self::SnapshotBehindLease => "the newest snapshot is older than one that a lease named",
            Self::SnapshotBehindLocal => {
                "the newest snapshot is older than one that this instance wrote or restored"
            }
            Self::SnapshotUnchecked => "a snapshot that may be the newest cannot be checked",
        })
    }
}

/// The rule that decided; see [the module](super).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// An operator has decided.
    Forced,
    /// No lease, and nothing anywhere.
    FirstActivation,
    /// None verified but legacy ones, and nothing says that there were others.
    Legacy,
    /// Legacy ones alone, although one with a header was named or is seen.
    LegacyAfterUpgrade,
    /// No lease, although there was a cluster.
    LeaseMissing,
    /// A verified snapshot has a higher epoch than the lease.
    LeaseReplayed,
    /// The lease names a snapshot that is older than the two newest verified ones.
    LeaseStale,
    /// The lease cannot be believed.
    LeaseUntrusted,
    /// The newest verified one.
    Newest,
    /// Nothing to restore.
    NoSnapshot,
    /// This instance wrote the newest, under the epoch it last held.
    OwnIsNewest,
    /// Older than what a lease named.
    BehindLease,
    /// Older than what this instance wrote or restored.
    BehindLocal,
    /// What may be the newest cannot be checked.
    Unchecked,
}
