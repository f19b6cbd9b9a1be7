//! One row of the matrix: each kind of fact as a word, and what the reference says of the words.
//!
//! The snapshots of a row have fixed names. Epoch 9 is the newest there is, taken at second 30; the
//! one before it is of epoch 9 and second 20 (or of epoch 8).

use crate::support::{header, name};
use snapshot_format::{
    catalog::{Checked, ListedSnapshot, Refusal, Uncheckable, Verdict},
    fencing::{Epoch, WallTime},
    lease_core::key::InstanceId,
    name::{Mark, SnapshotName},
    rollback::{Facts, Lease, OwnDatabase, PopulatedFirst, Reason, Snapshots, Standing},
};
use std::collections::BTreeSet;

/// What a lease or a high-water mark names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Nothing,
    /// Older than every snapshot of a row.
    Oldest,
    Second,
    Newest,
    /// Newer than every snapshot of a row.
    Newer,
}

impl Named {
    fn mark(self) -> Option<Mark> {
        match self {
            Self::Nothing => None,
            Self::Oldest => Some(name(7, 0).mark()),
            Self::Second => Some(second().mark()),
            Self::Newest => Some(newest().mark()),
            Self::Newer => Some(name(9, 40_000).mark()),
        }
    }
}

pub(crate) fn newest() -> SnapshotName {
    name(9, 30_000)
}

pub(crate) fn second() -> SnapshotName {
    name(9, 20_000)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeaseIs {
    Missing,
    Unreadable,
    Forged,
    Unsigned,
    /// Authentic, of epoch 9.
    Names(Named),
    /// Authentic, of epoch 8, naming nothing.
    OldEpoch,
}

pub(crate) const LEASES: [LeaseIs; 10] = [
    LeaseIs::Missing,
    LeaseIs::Unreadable,
    LeaseIs::Forged,
    LeaseIs::Unsigned,
    LeaseIs::Names(Named::Nothing),
    LeaseIs::Names(Named::Oldest),
    LeaseIs::Names(Named::Second),
    LeaseIs::Names(Named::Newest),
    LeaseIs::Names(Named::Newer),
    LeaseIs::OldEpoch,
];

/// The verified snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VerifiedAre {
    None,
    /// The newest, of another instance.
    One,
    /// The newest, of this instance, under the epoch that it last held.
    OneOfOurs,
    /// The newest, of this instance, which has held a later epoch since.
    OursBefore,
    /// The newest, of another instance, under the epoch that this one last held. (Two that share an
    /// epoch cannot be; a decision that looks at one half only would not tell.)
    SameEpoch,
    /// The second alone: what would be the newest is gone.
    SecondAlone,
    /// Both, of another instance.
    Both,
}

pub(crate) const VERIFIED: [VerifiedAre; 7] = [
    VerifiedAre::None,
    VerifiedAre::One,
    VerifiedAre::OneOfOurs,
    VerifiedAre::OursBefore,
    VerifiedAre::SameEpoch,
    VerifiedAre::SecondAlone,
    VerifiedAre::Both,
];

impl VerifiedAre {
    pub(crate) fn names(self) -> Vec<SnapshotName> {
        match self {
            Self::None => vec![],
            Self::One | Self::OneOfOurs | Self::OursBefore | Self::SameEpoch => vec![newest()],
            Self::SecondAlone => vec![second()],
            Self::Both => vec![newest(), second()],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UncheckedIs {
    None,
    /// It sorts before every verified one.
    First,
    /// It sorts behind every verified one.
    Last,
}

pub(crate) const UNCHECKED: [UncheckedIs; 3] =
    [UncheckedIs::None, UncheckedIs::First, UncheckedIs::Last];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RefusedIs {
    None,
    /// Sealed with another secret.
    Foreign,
    /// A renamed copy of one of this cluster's, which shows a header.
    Renamed,
}

pub(crate) const REFUSED: [RefusedIs; 3] =
    [RefusedIs::None, RefusedIs::Foreign, RefusedIs::Renamed];

/// What this instance knew of the cluster, apart from marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knew {
    Nothing,
    TheCluster,
    /// And has seen an authenticated lease.
    AnAuthenticLease,
}

pub(crate) const KNEW: [Knew; 3] = [Knew::Nothing, Knew::TheCluster, Knew::AnAuthenticLease];
pub(crate) const OWN_MARKS: [Named; 3] = [Named::Nothing, Named::Second, Named::Newer];
pub(crate) const SEEN_NAMED: [Named; 3] = [Named::Nothing, Named::Oldest, Named::Newer];
pub(crate) const DATABASES: [OwnDatabase; 3] =
    [OwnDatabase::Missing, OwnDatabase::Empty, OwnDatabase::Populated];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) lease: LeaseIs,
    pub(crate) verified: VerifiedAre,
    pub(crate) unchecked: UncheckedIs,
    pub(crate) has_legacy: bool,
    pub(crate) refused: RefusedIs,
    pub(crate) own_mark: Named,
    pub(crate) seen_named: Named,
    pub(crate) knew: Knew,
    pub(crate) database: OwnDatabase,
    pub(crate) populated_first: PopulatedFirst,
}

impl Row {
    pub(crate) fn facts(self) -> Facts {
        let lease = match self.lease {
            LeaseIs::Missing => Lease::Missing,
            LeaseIs::Unreadable => Lease::Unreadable,
            LeaseIs::Forged => Lease::Forged,
            LeaseIs::Unsigned => Lease::Unsigned,
            LeaseIs::Names(named) => {
                Lease::Authentic { epoch: name(9, 0).epoch(), last_snapshot: named.mark() }
            }
            LeaseIs::OldEpoch => {
                Lease::Authentic { epoch: name(8, 0).epoch(), last_snapshot: None }
            }
        };
        Facts {
            lease,
            snapshots: Snapshots::new(self.checked(), false),
            own: Standing {
                instance: InstanceId::new("s-1").unwrap(),
                database: self.database,
                knew_the_cluster: self.knew != Knew::Nothing,
                seen_authenticated_lease: self.knew == Knew::AnAuthenticLease,
                last_epoch: self.last_epoch(),
                newest_snapshot: self.own_mark.mark(),
                newest_named: self.seen_named.mark(),
            },
            forced: None,
            populated_first: self.populated_first,
        }
    }

    fn last_epoch(self) -> Option<Epoch> {
        match self.verified {
            VerifiedAre::OneOfOurs | VerifiedAre::SameEpoch => Some(newest().epoch()),
            VerifiedAre::OursBefore => newest().epoch().next().ok(),
            _ => None,
        }
    }

    fn checked(self) -> Vec<Checked> {
        let by = match self.verified {
            VerifiedAre::OneOfOurs | VerifiedAre::OursBefore => "s-1",
            _ => "s-2",
        };
        let mut all: Vec<_> =
            self.verified.names().into_iter().map(|name| verified(name, by)).collect();
        match self.unchecked {
            UncheckedIs::None => {}
            UncheckedIs::First => all.push(unchecked(name(9, 50_000))),
            UncheckedIs::Last => all.push(unchecked(name(6, 0))),
        }
        if self.has_legacy {
            all.push(checked(name(5, 0), Verdict::Legacy));
        }
        // Refused ones sort first: they must not stand in the way of anything.
        match self.refused {
            RefusedIs::None => {}
            RefusedIs::Foreign => {
                all.push(checked(name(900, 0), Verdict::Refused(Refusal::OtherCluster)));
            }
            RefusedIs::Renamed => {
                let header = newest().epoch();
                all.push(checked(name(901, 0), Verdict::Refused(Refusal::OtherEpoch { header })));
            }
        }
        all
    }

    /// Every reason of the reference that applies to the row, each read for itself.
    pub(crate) fn reasons(self) -> BTreeSet<Reason> {
        use Named::{Newer, Newest, Nothing, Oldest};
        let mut reasons = BTreeSet::new();
        let mut when = |holds: bool, reason| {
            if holds {
                reasons.insert(reason);
            }
        };
        let none_verified = self.verified == VerifiedAre::None;
        let is_unchecked = self.unchecked != UncheckedIs::None;
        let shows_a_header = !none_verified || self.refused == RefusedIs::Renamed;
        let has_marks = self.own_mark != Nothing || self.seen_named != Nothing;

        // "The lease it took over is unreadable, its mac is wrong, or its mac is missing although the
        // target holds a snapshot with an authenticated header or this instance has seen an
        // authenticated lease."
        when(
            matches!(self.lease, LeaseIs::Unreadable | LeaseIs::Forged)
                || (self.lease == LeaseIs::Unsigned
                    && (shows_a_header || self.knew == Knew::AnAuthenticLease)),
            Reason::LeaseUntrusted,
        );
        // "A verified snapshot was written under a higher epoch than the lease's."
        when(self.lease == LeaseIs::OldEpoch && !none_verified, Reason::LeaseReplayed);
        // "The last snapshot the lease names is older than the two newest verified snapshots."
        when(
            self.verified == VerifiedAre::Both
                && matches!(self.lease, LeaseIs::OldEpoch | LeaseIs::Names(Nothing | Oldest)),
            Reason::LeaseStale,
        );
        // "No lease existed although the target holds snapshots, or although this instance has seen
        // the cluster or its database is populated" (that last one where an operator wants it so).
        when(
            self.lease == LeaseIs::Missing
                && (!none_verified
                    || is_unchecked
                    || self.has_legacy
                    || self.refused != RefusedIs::None
                    || self.knew != Knew::Nothing
                    || has_marks
                    || (self.database == OwnDatabase::Populated
                        && self.populated_first == PopulatedFirst::Refuse)),
            Reason::LeaseMissing,
        );
        // "The newest verified snapshot is older than the last snapshot the lease names, or than one
        // an authentic lease this instance saw named."
        let behind = |named: Named| match self.verified {
            VerifiedAre::None => named != Nothing,
            VerifiedAre::SecondAlone => matches!(named, Newest | Newer),
            _ => named == Newer,
        };
        let lease_names = match self.lease {
            LeaseIs::Names(named) => named,
            _ => Nothing,
        };
        when(behind(lease_names) || behind(self.seen_named), Reason::SnapshotBehindLease);
        // "It is older than this instance's high-water mark."
        when(behind(self.own_mark), Reason::SnapshotBehindLocal);
        // "Only snapshots without a header are left, but the lease or the high-water mark names a
        // snapshot with one", or one of the cluster's shows a header.
        when(
            none_verified
                && self.has_legacy
                && (lease_names != Nothing || has_marks || shows_a_header),
            Reason::LegacyAfterUpgrade,
        );
        // "A snapshot that sorts before the newest verified one but cannot be checked."
        when(
            self.unchecked == UncheckedIs::First || (is_unchecked && none_verified),
            Reason::SnapshotUnchecked,
        );
        // "No metadata snapshot to take over from."
        when(
            self.lease != LeaseIs::Missing && none_verified && !self.has_legacy,
            Reason::NoSnapshot,
        );
        reasons
    }
}

pub(crate) fn checked(name: SnapshotName, verdict: Verdict) -> Checked {
    let listed = ListedSnapshot {
        name,
        key: crate::support::layout().key(&name),
        size: 1,
        modified: WallTime::default(),
        etag: None,
    };
    Checked { listed, verdict }
}

pub(crate) fn verified(name: SnapshotName, by: &str) -> Checked {
    let mut header = header(name);
    header.instance_id = InstanceId::new(by).unwrap();
    checked(name, Verdict::Verified(header))
}

pub(crate) fn unchecked(name: SnapshotName) -> Checked {
    checked(name, Verdict::Unchecked(Uncheckable::Changed))
}
