//! Shards: many leases spread evenly over the instances that are there, with no coordinator.
//!
//! Every instance decides for itself, by a pure [`Policy`], from what it sees: who the members are, and
//! which shards they hold. `ShardSet` of the runner carries that out on a session.
//!
//! # Who is there
//!
//! A store that only reads, creates and replaces cannot list the instances. So they are found at
//! places that everybody knows: *slots* `<set>/members/0`, `1`, `2`…, each of them a named lease like
//! any other. Whoever joins takes the lowest that is free; whoever is there watches all up to one above
//! the highest that is held, and moves down when the slot below its own becomes free, so that no gap
//! stays. A member that dies frees its slot as it frees its shards, when its session has been silent
//! for W. See [`Roster`].
//!
//! # Who holds what
//!
//! [`FairShare`] lets each member have N/M shards, rounded down, and those in the lowest slots one more
//! until all are spoken for. That is known from the slots alone. So nobody looks at a shard while it
//! has its share: whoever has more gives the rest back, whoever has less tries shards until it has
//! enough.
//!
//! - When a member goes, no share shrinks; when one comes, no other share grows. So **no shard moves
//!   between two members that stay**: what moves is the share of the one who came or went.
//! - In a balanced set nothing moves.
//!
//! # What it costs, and what if it is wrong
//!
//! Per R, each of M members sends one write (its session), M conditional reads of slots, and a
//! conditional read of each other member's session: M(2M + 1) or less in all, whatever the number of
//! shards. A change costs one read and one write for each shard that moves, and reads of shards that are
//! tried in vain.
//!
//! Slots and policy decide what an instance *wants*. Whether it may act is decided by the lease of each
//! shard, as ever: members that see different things, two that hold one slot after a hand deleted it, or a
//! policy that errs, cost balance and requests, never safety.

mod fair;
mod roster;

pub use fair::FairShare;
pub use roster::{Roster, SlotSeen};

use crate::key::{InstanceId, LeaseName};
use std::{collections::BTreeMap, fmt};

/// Decides what one instance wants. Pure: the same view has the same plan.
///
/// Policies of all members have to be the same for a balance to come out; if they are not, leases are
/// still held by one at a time.
///
/// ```
/// use lease_core::{key::InstanceId, session::shards::{Plan, Policy, Shard, View}};
///
/// /// The first member has everything; the others stand by.
/// #[derive(Debug)]
/// struct AllInOne;
///
/// impl Policy for AllInOne {
///     fn decide(&self, view: &View) -> Plan {
///         let is_first = view.members.first() == Some(&view.me);
///         let wanted = |(name, shard): (&_, &_)| match shard {
///             Shard::Free | Shard::Unknown if is_first => Some(Clone::clone(name)),
///             _ => None,
///         };
///         let acquire = view.shards.iter().filter_map(wanted).collect();
///         let release = if is_first { Vec::new() } else { view.mine().cloned().collect() };
///         Plan { acquire, release }
///     }
/// }
/// ```
pub trait Policy: fmt::Debug + Send + Sync {
    /// What this instance is to acquire and to give back now.
    fn decide(&self, view: &View) -> Plan;
}

/// What one instance sees of a set of shards.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// Who decides.
    pub me: InstanceId,
    /// Who is there, by rising slot, each once. This instance is among them once it has a slot.
    pub members: Vec<InstanceId>,
    /// Every shard, and who holds it.
    pub shards: BTreeMap<LeaseName, Shard>,
}

impl View {
    /// The shards that this instance holds.
    pub fn mine(&self) -> impl Iterator<Item = &LeaseName> {
        self.shards.iter().filter(|(_, shard)| **shard == Shard::Mine).map(|(name, _)| name)
    }
}

/// Who holds a shard, as one instance sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shard {
    /// Nobody: it can be taken.
    Free,
    /// Another instance.
    Held(InstanceId),
    /// This instance.
    Mine,
    /// Not now: this instance is giving it back, or has tried it in vain a moment ago.
    Resting,
    /// It was not looked at lately.
    Unknown,
}

/// What one instance wants.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plan {
    /// To be tried now, what is best first. Some may turn out to be held; the plan is made anew with
    /// what came of it.
    pub acquire: Vec<LeaseName>,
    /// To be given back, once the work on them has ended.
    pub release: Vec<LeaseName>,
}

impl Plan {
    /// Nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.acquire.is_empty() && self.release.is_empty()
    }
}
