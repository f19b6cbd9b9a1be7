//! What a takeover found, for the decision what to restore.

use super::{core::Core, rules::Rules, seen::Seen};
use crate::{auth::Verdict, record::SnapshotMark};
use fencing::Epoch;

/// What stood in place of the lease before a takeover wrote it, and what was known of the cluster by
/// then. The takeover's own write is in neither.
///
/// An application that restores snapshots compares it with what it finds of them, before it confirms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Inherited {
    /// Whether the lease could be believed; `None` if there was none.
    pub verdict: Option<Verdict>,
    /// The epoch it said, if it could be read.
    pub epoch: Option<Epoch>,
    /// The newest snapshot it named, if it could be read.
    pub last_snapshot: Option<SnapshotMark>,
    /// An authenticated lease of the cluster had been seen, or snapshots that prove one.
    pub seen_authenticated: bool,
    /// This instance knew something of the cluster: a lease that it read, an epoch that it held, or
    /// snapshots that its epoch floor told of.
    pub knew_the_cluster: bool,
}

impl Inherited {
    pub(super) fn of<R: Rules>(seen: &Seen, core: &Core<R>) -> Self {
        if let Some(retaking) = seen.retaking(core) {
            return retaking.inherited.clone();
        }
        let facts = seen.facts();
        Self {
            verdict: seen.verdict(),
            epoch: facts.map(|facts| facts.epoch),
            last_snapshot: facts.and_then(|facts| facts.last_snapshot.clone()),
            seen_authenticated: core.known.has_seen_authenticated(),
            knew_the_cluster: !core.known.is_untouched(),
        }
    }
}
