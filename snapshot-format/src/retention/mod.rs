//! Which snapshots may be deleted.
//!
//! A decision over a whole listing, every snapshot of it checked; [`plan`] makes it without asking
//! anybody, [`Catalog::prune`](crate::Catalog::prune) carries it out.
//!
//! Only verified snapshots count, and only they and legacy ones are ever deleted:
//!
//! | kept | why |
//! | --- | --- |
//! | the first [`KEPT_FIRST`] in takeover order | a takeover restores the first |
//! | the newest [`KEPT_OF_EPOCH`] of the current epoch | they are what the active instance wrote |
//! | the newest by time, whatever its epoch | the clocks of two instances may differ, and people go by time |
//! | every refused one | it is evidence; and a name that nobody authenticated displaces no genuine snapshot |
//! | every unchecked one, and all that sorts before one | it may be the newest |
//! | legacy ones, while none is verified | they are all that there is |
//!
//! So the newest snapshot is never deleted, nor the newest of the current epoch, and the number of
//! verified ones stays bounded by 25, however many names are planted.

mod prune;

use crate::{
    catalog::{Checked, ListedSnapshot, Verdict},
    name::SnapshotName,
};
use fencing::Epoch;
pub use prune::{PruneError, Pruned};
use std::{cmp::Reverse, collections::BTreeSet, fmt};

/// How many verified snapshots are kept from the beginning of the takeover order.
pub const KEPT_FIRST: usize = 12;
/// How many verified snapshots of the current epoch are kept, the newest.
pub const KEPT_OF_EPOCH: usize = 12;

/// What becomes of one snapshot, and by which rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// It goes: verified, and none of the rules keeps it.
    Beyond,
    /// It goes: legacy, and a verified one exists.
    Superseded,
    /// It stays: it is among the first in takeover order.
    AmongFirst,
    /// It stays: it is among the newest of the current epoch.
    AmongCurrent,
    /// It stays: a snapshot that sorts behind it cannot be checked.
    BeforeUnchecked,
    /// It stays: it is legacy, and none is verified.
    NoneVerified,
    /// It stays: no other is newer by time.
    NewestByTime,
    /// It stays, and a person has to look at it: it is refused.
    Refused,
    /// It stays: it cannot be checked.
    Unchecked,
}

impl Fate {
    /// Whether it is deleted.
    #[must_use]
    pub const fn is_deleted(self) -> bool {
        matches!(self, Self::Beyond | Self::Superseded)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beyond => "deleted: newer ones are enough",
            Self::Superseded => "deleted: it has no header, and one with a header is verified",
            Self::AmongFirst => "kept: among the first in takeover order",
            Self::AmongCurrent => "kept: among the newest of the current epoch",
            Self::BeforeUnchecked => "kept: one that sorts behind it cannot be checked",
            Self::NoneVerified => "kept: none is verified",
            Self::NewestByTime => "kept: the newest by time",
            Self::Refused => "kept: refused, find out who wrote it",
            Self::Unchecked => "kept: it cannot be checked",
        })
    }
}

/// What becomes of every snapshot of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan(Vec<(ListedSnapshot, Fate)>);

impl Plan {
    /// Each snapshot with its fate, in takeover order.
    #[must_use]
    pub fn fates(&self) -> &[(ListedSnapshot, Fate)] {
        &self.0
    }

    /// What is to be deleted, the oldest first: were the work cut, what is left is still newest first
    /// without a gap.
    pub fn deleted(&self) -> impl Iterator<Item = &ListedSnapshot> {
        self.0.iter().rev().filter(|(_, fate)| fate.is_deleted()).map(|(listed, _)| listed)
    }
}

/// Decides on a whole listing, every snapshot of it checked, while `current` is the epoch of the
/// active instance.
///
/// A part of a listing will not do: what is not in it may be the newest.
///
/// ```
/// use snapshot_format::{
///     catalog::{Checked, ListedSnapshot, Verdict},
///     fencing::{Epoch, WallTime},
///     name::{SnapshotName, SnapshotTime},
///     retention::{Fate, plan},
/// };
///
/// let legacy = Checked {
///     listed: ListedSnapshot {
///         name: SnapshotName::new(SnapshotTime::MIN, Epoch::MIN),
///         key: "_orders/metadata/ha/prod/orders-19700101T000000.000Z-e1.db.age".into(),
///         size: 4096,
///         modified: WallTime::default(),
///         etag: None,
///     },
///     verdict: Verdict::Legacy,
/// };
/// let plan = plan(&[legacy], Epoch::MIN);
/// assert_eq!(plan.fates()[0].1, Fate::NoneVerified);
/// assert_eq!(plan.deleted().count(), 0);
/// ```
#[must_use]
pub fn plan(checked: &[Checked], current: Epoch) -> Plan {
    let mut all: Vec<&Checked> = checked.iter().collect();
    all.sort_by_key(|checked| checked.listed.name);
    let is_verified = |checked: &&&Checked| checked.verdict.verified().is_some();
    let verified: Vec<SnapshotName> =
        all.iter().filter(is_verified).map(|checked| checked.listed.name).collect();

    let first: BTreeSet<_> = verified.iter().take(KEPT_FIRST).collect();
    // Within an epoch the takeover order is the newest first.
    let of_epoch = verified.iter().filter(|name| name.epoch() == current);
    let of_epoch: BTreeSet<_> = of_epoch.take(KEPT_OF_EPOCH).collect();
    let newest_by_time = verified.iter().min_by_key(|name| (Reverse(name.at()), **name));
    let is_unchecked = |checked: &&Checked| matches!(checked.verdict, Verdict::Unchecked(_));
    let last_unchecked =
        all.iter().copied().rev().find(is_unchecked).map(|checked| checked.listed.name);

    let fate = |checked: &Checked| {
        let name = &checked.listed.name;
        let is_before_unchecked = Some(*name) < last_unchecked;
        match &checked.verdict {
            Verdict::Refused(_) => Fate::Refused,
            Verdict::Unchecked(_) => Fate::Unchecked,
            Verdict::Legacy if verified.is_empty() => Fate::NoneVerified,
            Verdict::Verified(_) if first.contains(name) => Fate::AmongFirst,
            Verdict::Verified(_) if of_epoch.contains(name) => Fate::AmongCurrent,
            Verdict::Verified(_) if newest_by_time == Some(name) => Fate::NewestByTime,
            _ if is_before_unchecked => Fate::BeforeUnchecked,
            Verdict::Legacy => Fate::Superseded,
            Verdict::Verified(_) => Fate::Beyond,
        }
    };
    Plan(all.into_iter().map(|checked| (checked.listed.clone(), fate(checked))).collect())
}
