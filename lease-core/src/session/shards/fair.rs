//! The policy that spreads shards evenly.

use super::{Plan, Policy, Shard, View};
use crate::key::{InstanceId, LeaseName};
use std::collections::BTreeMap;

/// Each member has N/M shards, rounded down, and those in the lowest slots one more until all are
/// spoken for. See the [module](super) for what follows from that.
///
/// Which shards: each member begins at a place of its own in their order, takes what comes next
/// there, and gives back what is farthest from it. So those who try at once seldom meet, and what one
/// gives back for a newcomer is what the newcomer tries first.
///
/// ```
/// use lease_core::{
///     key::{InstanceId, LeaseName},
///     session::shards::{FairShare, Policy, Shard, View},
/// };
///
/// let (a, b) = (InstanceId::new("a")?, InstanceId::new("b")?);
/// let name = |number: u32| LeaseName::new(&format!("shard-{number}"));
/// let view = View {
///     me: a.clone(),
///     members: vec![a, b],                        // b has just come
///     shards: (0..5).map(|number| Ok((name(number)?, Shard::Mine))).collect::<Result<_, _>>()?,
/// };
/// let plan = FairShare.decide(&view);
/// assert_eq!(plan.release, [name(4)?, name(3)?]);  // a keeps three of five
/// assert!(plan.acquire.is_empty());
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FairShare;

impl FairShare {
    /// How many of `shards` the member of this rank has among `members`, counted from 0 by rising slot.
    ///
    /// ```
    /// use lease_core::session::shards::FairShare;
    ///
    /// assert_eq!([0, 1, 2].map(|rank| FairShare::share(64, 3, rank)), [22, 21, 21]);
    /// ```
    #[must_use]
    pub const fn share(shards: usize, members: usize, rank: usize) -> usize {
        match (shards.checked_div(members), shards.checked_rem(members)) {
            (Some(share), Some(rest)) => share + (rank < rest) as usize,
            _ => 0,
        }
    }
}

impl Policy for FairShare {
    fn decide(&self, view: &View) -> Plan {
        let Some(rank) = view.members.iter().position(|member| *member == view.me) else {
            // Nobody counts on it yet. To be seen comes first.
            return Plan::default();
        };
        let share = Self::share(view.shards.len(), view.members.len(), rank);
        let order = from_own_place(view, rank);
        let mine: Vec<_> = order.iter().filter(|(_, shard)| **shard == Shard::Mine).collect();
        if mine.len() > share {
            let surplus = mine.iter().skip(share).rev().map(|(name, _)| (*name).clone());
            return Plan { release: surplus.collect(), acquire: Vec::new() };
        }
        let acquire = candidates(view, &order).take(share - mine.len()).collect();
        Plan { acquire, release: Vec::new() }
    }
}

type Order<'v> = Vec<(&'v LeaseName, &'v Shard)>;

/// All shards in their order, beginning where the shares of those before would end.
fn from_own_place(view: &View, rank: usize) -> Order<'_> {
    let (shards, members) = (view.shards.len(), view.members.len());
    let start = (0..rank).map(|before| FairShare::share(shards, members, before)).sum();
    let mut order: Order<'_> = view.shards.iter().collect();
    order.rotate_left(start);
    order
}

/// What may be had: first what is free, then what nobody has looked at, then what is held by no member
/// (it died, or has left its slot) or by one that has too much and will give it back.
fn candidates(view: &View, order: &Order<'_>) -> impl Iterator<Item = LeaseName> {
    let mut held: BTreeMap<&InstanceId, usize> = BTreeMap::new();
    for (_, shard) in order {
        if let Shard::Held(holder) = shard {
            *held.entry(holder).or_default() += 1;
        }
    }
    let (shards, members) = (view.shards.len(), view.members.len());
    let gives_back = |holder: &InstanceId| {
        view.members.iter().position(|member| member == holder).is_none_or(|rank| {
            let held = held.get(holder).copied().unwrap_or_default();
            held > FairShare::share(shards, members, rank)
        })
    };
    let mut ranked: Vec<(u8, &LeaseName)> = order
        .iter()
        .filter_map(|(name, shard)| match shard {
            Shard::Mine | Shard::Resting => None,
            Shard::Free => Some((0, *name)),
            Shard::Unknown => Some((1, *name)),
            Shard::Held(holder) => gives_back(holder).then_some((2, *name)),
        })
        .collect();
    ranked.sort_by_key(|(class, _)| *class);
    ranked.into_iter().map(|(_, name)| name.clone())
}
