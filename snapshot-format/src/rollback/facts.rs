//! What is known before a decision.

use crate::{
    catalog::{Checked, Verdict},
    name::{Mark, MarkError},
};
use fencing::Epoch;
use lease_core::{
    auth, history::History, key::InstanceId, machine::Inherited, record::SnapshotMark,
};
use object_store::path::Path;

/// Everything that a takeover's decision is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What was there in place of the lease, before this takeover wrote it.
    pub lease: Lease,
    /// What the store keeps.
    pub snapshots: Snapshots,
    /// What this instance knows.
    pub own: Standing,
    /// What an operator has decided, for this one takeover.
    pub forced: Option<Override>,
    /// What a populated database of a first activation means.
    pub populated_first: PopulatedFirst,
}

/// The lease that a takeover found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lease {
    /// There was none: it was created.
    Missing,
    /// It is no record, or names a snapshot in a way that cannot be compared.
    Unreadable,
    /// Its MAC is wrong.
    Forged,
    /// It has no MAC: an earlier version wrote it, or somebody who does not hold the secret.
    Unsigned,
    /// A holder of the secret wrote it, at some time.
    Authentic {
        /// Its epoch.
        epoch: Epoch,
        /// The newest snapshot that it names.
        last_snapshot: Option<Mark>,
    },
}

impl Lease {
    /// From what a tenure tells of what it took over from.
    #[must_use]
    pub fn inherited(inherited: &Inherited) -> Self {
        match (inherited.verdict, inherited.epoch) {
            (None, _) => Self::Missing,
            (Some(verdict), Some(epoch)) => {
                Self::found(verdict, epoch, inherited.last_snapshot.as_ref())
            }
            (Some(_), None) => Self::Unreadable,
        }
    }

    /// From the judgement of what was read in its place.
    ///
    /// ```
    /// use snapshot_format::{
    ///     lease_core::auth::{Authenticator, ClusterSecret},
    ///     rollback::Lease,
    /// };
    ///
    /// let secret = ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?;
    /// let ours = Authenticator::new("prod".parse()?, Some(&secret));
    /// let text = br#"{"cluster":"prod","holder":"a","epoch":7,"seq":1,"ttl_seconds":30}"#;
    /// assert_eq!(Lease::judged(&ours.judge(text)), Lease::Unsigned);
    /// assert_eq!(Lease::judged(&ours.judge(b"junk")), Lease::Unreadable);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn judged(judgement: &auth::Judgement) -> Self {
        match &judgement.record {
            Some(record) => {
                Self::found(judgement.verdict, record.epoch, record.last_snapshot.as_ref())
            }
            None => Self::Unreadable,
        }
    }

    fn found(verdict: auth::Verdict, epoch: Epoch, last: Option<&SnapshotMark>) -> Self {
        match verdict {
            auth::Verdict::Authentic => match last.map(Mark::try_from).transpose() {
                Ok(last_snapshot) => Self::Authentic { epoch, last_snapshot },
                Err(_) => Self::Unreadable,
            },
            // What it names, nobody vouches for.
            auth::Verdict::Unsigned => Self::Unsigned,
            auth::Verdict::Forged => Self::Forged,
            auth::Verdict::Unreadable => Self::Unreadable,
        }
    }
}

/// What the store keeps, as far as a decision needs it: in takeover order, up to the second verified
/// one or to the end.
///
/// [`Catalog::takeover_snapshots`](crate::Catalog::takeover_snapshots) gathers it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshots {
    checked: Vec<Checked>,
    others: bool,
}

impl Snapshots {
    /// From a whole listing, or from its beginning in takeover order as long as that has two verified
    /// ones. `others`: there is something else under the prefix.
    #[must_use]
    pub fn new(mut checked: Vec<Checked>, others: bool) -> Self {
        checked.sort_by_key(|checked| checked.listed.name);
        Self { checked, others }
    }

    /// The snapshots and their verdicts, in takeover order.
    #[must_use]
    pub fn checked(&self) -> &[Checked] {
        &self.checked
    }

    /// Whether nothing at all is under the cluster's prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.checked.is_empty() && !self.others
    }

    pub(super) fn verified(&self) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(|checked| checked.verdict.verified().is_some())
    }

    pub(super) fn legacy(&self) -> Option<&Checked> {
        self.checked.iter().find(|checked| checked.verdict == Verdict::Legacy)
    }

    /// Whether any shows that a version which writes headers wrote snapshots of this cluster.
    pub(super) fn shows_a_header(&self) -> bool {
        self.checked.iter().any(|checked| checked.verdict.shows_a_header())
    }

    /// The first that cannot be checked and sorts before the newest verified one: it may be newer.
    /// Without a verified one, that is any.
    pub(super) fn undecided(&self) -> Option<&Checked> {
        let ahead = self.checked.iter().take_while(|it| it.verdict.verified().is_none());
        ahead.into_iter().find(|it| matches!(it.verdict, Verdict::Unchecked(_)))
    }
}

/// What this instance knows and has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Standing {
    /// Who it is.
    pub instance: InstanceId,
    /// What its own database is.
    pub database: OwnDatabase,
    /// It knew something of the cluster before this takeover: a lease, a snapshot, or an epoch that
    /// it held.
    pub knew_the_cluster: bool,
    /// It has ever seen or written an authenticated lease of the cluster.
    pub seen_authenticated_lease: bool,
    /// The epoch that it last held, before this takeover.
    pub last_epoch: Option<Epoch>,
    /// The newest snapshot that it wrote or restored.
    pub newest_snapshot: Option<Mark>,
    /// The newest snapshot that an authentic lease named which it read.
    pub newest_named: Option<Mark>,
}

impl Standing {
    /// From what the takeover found, and the instance's history as it is before the takeover is
    /// confirmed.
    ///
    /// # Errors
    ///
    /// [`MarkError`] if the history names a snapshot in a way that cannot be compared: the version
    /// that wrote such a mark has to decide.
    pub fn new(
        instance: InstanceId,
        database: OwnDatabase,
        inherited: &Inherited,
        history: &History,
    ) -> Result<Self, MarkError> {
        let mark = |mark: &Option<SnapshotMark>| mark.as_ref().map(Mark::try_from).transpose();
        Ok(Self {
            instance,
            database,
            knew_the_cluster: inherited.knew_the_cluster,
            // Not the history's: the takeover's own lease, signed, is in it by now.
            seen_authenticated_lease: inherited.seen_authenticated,
            last_epoch: history.last_epoch,
            newest_snapshot: mark(&history.newest_snapshot)?,
            newest_named: mark(&history.newest_named_snapshot)?,
        })
    }
}

/// What an instance's own database is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OwnDatabase {
    /// There is none.
    Missing,
    /// It was created and never used: there is nothing in it to lose.
    Empty,
    /// There is something in it.
    Populated,
}

/// What a populated database means at the first activation of a cluster of which nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PopulatedFirst {
    /// A single instance becomes the first of a cluster: it keeps its database.
    #[default]
    Keep,
    /// An operator has to say so: the cluster may have been deleted, and this database be an old one.
    Refuse,
}

/// An operator's decision, for one takeover of one instance. Whoever can write to the instance's own
/// directory may make it; a store's credentials are not enough.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Override {
    /// Restore the snapshot of this key, however old it is. It has to be genuine.
    FromSnapshot(Path),
    /// Keep the instance's own database.
    KeepOwnDatabase,
}
