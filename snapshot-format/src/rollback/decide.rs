//! The rules, in their order.

use super::{
    Facts, Lease, Override, OwnDatabase, PopulatedFirst, Reason, Rule, Snapshots, Standing,
};
use crate::{
    catalog::{Checked, ListedSnapshot, Verdict},
    name::Mark,
};
use fencing::Epoch;
use object_store::path::Path;

/// What a takeover is to do, and the rule that decided it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What to do.
    pub choice: Choice,
    /// Which rule decided.
    pub rule: Rule,
}

/// What a takeover is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Choice {
    /// Keep the instance's own database: it is at least as new, or there is no other.
    KeepOwn,
    /// Abandon the takeover.
    Refuse(Reason),
    /// Restore this snapshot, and no other in its place.
    Restore(Restore),
    /// Start with an empty database: this is the first activation of a new cluster. Never silent.
    StartEmpty,
}

/// A snapshot to be restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restore {
    /// Which stored version.
    pub listed: ListedSnapshot,
    /// Its mark, if its header was verified: the high-water mark once it is in place. A legacy one
    /// has none, since its name proves nothing.
    pub mark: Option<Mark>,
}

impl Restore {
    fn of(checked: &Checked) -> Self {
        let mark = checked.verdict.verified().map(|header| header.name().mark());
        Self { listed: checked.listed.clone(), mark }
    }
}

/// Decides what a takeover restores. Pure: equal facts, equal decision.
///
/// ```
/// use snapshot_format::{
///     lease_core::key::InstanceId,
///     rollback::{
///         Choice, Facts, Lease, OwnDatabase, PopulatedFirst, Reason, Rule, Snapshots, Standing, decide,
///     },
/// };
///
/// let mut facts = Facts {
///     lease: Lease::Missing,
///     snapshots: Snapshots::default(),
///     own: Standing {
///         instance: InstanceId::new("s-1")?,
///         database: OwnDatabase::Empty,
///         knew_the_cluster: false,
///         seen_authenticated_lease: false,
///         last_epoch: None,
///         newest_snapshot: None,
///         newest_named: None,
///     },
///     forced: None,
///     populated_first: PopulatedFirst::Keep,
/// };
/// let decision = decide(&facts);
/// assert_eq!((decision.choice, decision.rule), (Choice::StartEmpty, Rule::FirstActivation));
///
/// facts.own.knew_the_cluster = true;              // somebody deleted all of it
/// assert_eq!(decide(&facts).choice, Choice::Refuse(Reason::LeaseMissing));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn decide(facts: &Facts) -> Decision {
    let Facts { lease, snapshots, own, forced, populated_first } = facts;
    if let Some(forced) = forced {
        return Decision { choice: force(forced, snapshots, own), rule: Rule::Forced };
    }
    let refused = untrusted_lease(*lease, snapshots, own)
        .or_else(|| missing_lease(*lease, snapshots, own, *populated_first))
        .or_else(|| old_lease(*lease, snapshots));
    refused.unwrap_or_else(|| from_snapshots(*lease, snapshots, own))
}

fn refuse(reason: Reason, rule: Rule) -> Decision {
    Decision { choice: Choice::Refuse(reason), rule }
}

fn force(forced: &Override, snapshots: &Snapshots, own: &Standing) -> Choice {
    match forced {
        Override::KeepOwnDatabase if own.database == OwnDatabase::Missing => {
            Choice::Refuse(Reason::OverrideWithoutDatabase)
        }
        Override::KeepOwnDatabase => Choice::KeepOwn,
        Override::FromSnapshot(key) => force_snapshot(key, snapshots),
    }
}

fn force_snapshot(key: &Path, snapshots: &Snapshots) -> Choice {
    let Some(found) = snapshots.checked().iter().find(|checked| checked.listed.key == *key) else {
        return Choice::Refuse(Reason::OverrideNotFound);
    };
    match found.verdict {
        Verdict::Verified(_) | Verdict::Legacy => Choice::Restore(Restore::of(found)),
        // An operator may go back in time, not believe a forgery.
        Verdict::Refused(_) => Choice::Refuse(Reason::OverrideRefused),
        Verdict::Unchecked(_) => Choice::Refuse(Reason::SnapshotUnchecked),
    }
}

fn untrusted_lease(lease: Lease, snapshots: &Snapshots, own: &Standing) -> Option<Decision> {
    let is_trusted = match lease {
        Lease::Missing | Lease::Authentic { .. } => true,
        Lease::Unreadable | Lease::Forged => false,
        // Trust on first use.
        Lease::Unsigned => !own.seen_authenticated_lease && !snapshots.shows_a_header(),
    };
    (!is_trusted).then(|| refuse(Reason::LeaseUntrusted, Rule::LeaseUntrusted))
}

fn missing_lease(
    lease: Lease,
    snapshots: &Snapshots,
    own: &Standing,
    populated_first: PopulatedFirst,
) -> Option<Decision> {
    if lease != Lease::Missing {
        return None;
    }
    // Every mark is a sign of the cluster, whatever the rest of the history says.
    let knew = own.knew_the_cluster
        || own.seen_authenticated_lease
        || own.last_epoch.is_some()
        || own.newest_snapshot.is_some()
        || own.newest_named.is_some();
    let suspect =
        own.database == OwnDatabase::Populated && populated_first == PopulatedFirst::Refuse;
    if knew || suspect || !snapshots.is_empty() {
        return Some(refuse(Reason::LeaseMissing, Rule::LeaseMissing));
    }
    let choice = match own.database {
        OwnDatabase::Populated => Choice::KeepOwn,
        OwnDatabase::Empty | OwnDatabase::Missing => Choice::StartEmpty,
    };
    Some(Decision { choice, rule: Rule::FirstActivation })
}

/// A genuine lease that the snapshots show to be an old one. What cannot be checked changes nothing
/// about that.
fn old_lease(lease: Lease, snapshots: &Snapshots) -> Option<Decision> {
    let Lease::Authentic { epoch, last_snapshot } = lease else { return None };
    let mut newest = snapshots.verified().filter_map(mark);
    let (first, second) = (newest.next(), newest.next());
    if first.is_some_and(|first| first.epoch > epoch) {
        return Some(refuse(Reason::LeaseReplayed, Rule::LeaseReplayed));
    }
    // A crash between a snapshot and the lease that names it accounts for one.
    if second.is_some_and(|second| last_snapshot < Some(second)) {
        return Some(refuse(Reason::LeaseStale, Rule::LeaseStale));
    }
    None
}

fn mark(checked: &Checked) -> Option<Mark> {
    checked.verdict.verified().map(|header| header.name().mark())
}

fn from_snapshots(lease: Lease, snapshots: &Snapshots, own: &Standing) -> Decision {
    if snapshots.undecided().is_some() {
        return refuse(Reason::SnapshotUnchecked, Rule::Unchecked);
    }
    let named = match lease {
        Lease::Authentic { last_snapshot, .. } => last_snapshot.max(own.newest_named),
        _ => own.newest_named,
    };
    let newest = snapshots.verified().next();
    if newest.is_none() && snapshots.legacy().is_some() {
        let had_headers = named.is_some() || own.newest_snapshot.is_some();
        if had_headers || snapshots.shows_a_header() {
            return refuse(Reason::LegacyAfterUpgrade, Rule::LegacyAfterUpgrade);
        }
    }
    // No snapshot at all is older than any.
    let is_behind = |mark_to_reach: Option<Mark>| newest.and_then(mark) < mark_to_reach;
    if is_behind(named) {
        return refuse(Reason::SnapshotBehindLease, Rule::BehindLease);
    }
    if is_behind(own.newest_snapshot) {
        return refuse(Reason::SnapshotBehindLocal, Rule::BehindLocal);
    }
    match (newest, snapshots.legacy()) {
        (Some(newest), _) if is_own_newest(newest, own, own.last_epoch) => {
            Decision { choice: Choice::KeepOwn, rule: Rule::OwnIsNewest }
        }
        (Some(newest), _) => {
            Decision { choice: Choice::Restore(Restore::of(newest)), rule: Rule::Newest }
        }
        (None, Some(legacy)) => {
            Decision { choice: Choice::Restore(Restore::of(legacy)), rule: Rule::Legacy }
        }
        (None, None) => refuse(Reason::NoSnapshot, Rule::NoSnapshot),
    }
}

/// Nobody else wrote since, so that this instance's own database is at least as new.
fn is_own_newest(newest: &Checked, own: &Standing, last_epoch: Option<Epoch>) -> bool {
    own.database == OwnDatabase::Populated
        && newest.verdict.verified().is_some_and(|header| {
            header.instance_id == own.instance && Some(header.epoch) == last_epoch
        })
}
