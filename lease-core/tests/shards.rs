//! Shares without a coordinator: from any state to a balance, and no further.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

use lease_core::{
    key::{InstanceId, LeaseName},
    session::shards::{FairShare, Policy, Roster, Shard, SlotSeen, View},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn id(number: usize) -> InstanceId {
    InstanceId::new(&format!("i-{number}")).unwrap()
}

/// Who is there, and who holds what; `None`: nobody.
#[derive(Clone, Debug)]
struct World {
    members: Vec<InstanceId>,
    shards: BTreeMap<LeaseName, Option<InstanceId>>,
}

impl World {
    fn view(&self, me: &InstanceId) -> View {
        let seen = |holder: &Option<InstanceId>| match holder {
            None => Shard::Free,
            Some(holder) if holder == me => Shard::Mine,
            Some(holder) => Shard::Held(holder.clone()),
        };
        let shards = self.shards.iter().map(|(name, holder)| (name.clone(), seen(holder)));
        View { me: me.clone(), members: self.members.clone(), shards: shards.collect() }
    }

    /// Everybody decides by what its `view` of this moment is; then all of it is carried out, in this
    /// order of members. Whoever comes second finds a shard held.
    fn round(&mut self, views: impl Fn(&Self, &InstanceId) -> View) -> usize {
        let plans: Vec<_> = self
            .members
            .iter()
            .map(|me| (me.clone(), FairShare.decide(&views(self, me))))
            .collect();
        let mut moved = 0;
        for (me, plan) in &plans {
            for name in &plan.release {
                assert_eq!(self.shards.insert(name.clone(), None), Some(Some(me.clone())));
                moved += 1;
            }
        }
        for (me, plan) in plans {
            for name in plan.acquire {
                let holder = self.shards.get_mut(&name).unwrap();
                let is_free = holder.as_ref().is_none_or(|holder| !self.members.contains(holder));
                if is_free {
                    *holder = Some(me.clone());
                }
            }
        }
        moved
    }

    fn held(&self, member: &InstanceId) -> usize {
        self.shards.values().filter(|holder| holder.as_ref() == Some(member)).count()
    }

    fn is_balanced(&self) -> bool {
        let held: Vec<usize> = self.members.iter().map(|member| self.held(member)).collect();
        let spread = held.iter().max().unwrap() - held.iter().min().unwrap();
        held.iter().sum::<usize>() == self.shards.len() && spread <= 1
    }

    fn balance(&mut self) -> usize {
        // A round to give back, and one for each that may come second at a shard.
        let mut moved = 0;
        for _ in 0..self.members.len() + 2 {
            moved += self.round(Self::view);
        }
        assert!(self.is_balanced(), "{self:?}");
        assert_eq!(self.round(Self::view), 0, "something moves in a balanced set");
        moved
    }
}

fn world() -> impl Strategy<Value = World> {
    (1..9_usize, 0..70_usize).prop_flat_map(|(members, shards)| {
        // Some are held by instances that are no members (any more), some by nobody.
        prop::collection::vec(prop::option::weighted(0.8, 0..members + 2), shards).prop_map(
            move |holders| World {
                members: (0..members).map(id).collect(),
                shards: (0..).zip(holders).map(|(at, holder)| (name(at), holder.map(id))).collect(),
            },
        )
    })
}

fn name(number: usize) -> LeaseName {
    LeaseName::new(&format!("shard-{number:03}")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn from_any_state_it_comes_to_a_balance_and_moves_only_what_is_too_much(world in world()) {
        let mut world = world;
        let (shards, members) = (world.shards.len(), world.members.len());
        let too_much: usize = (0..members)
            .map(|rank| {
                world.held(&id(rank)).saturating_sub(FairShare::share(shards, members, rank))
            })
            .sum();
        prop_assert_eq!(world.balance(), too_much);
    }

    #[test]
    fn members_that_see_different_things_for_a_while_come_to_a_balance(
        world in world(),
        seed in any::<u64>(),
        rounds in 1..6_u64,
    ) {
        let mut world = world;
        for round in 0..rounds {
            // Each misses members, but for itself, and shards, as it happens to.
            world.round(|world, me| {
                let salt = seed.wrapping_mul(round + 1).wrapping_add(me.as_str().len() as u64);
                let is_missed = |at: usize| (salt >> (at % 61)) & 3 == 0;
                let mut view = world.view(me);
                let mut at = 0;
                view.members.retain(|member| {
                    at += 1;
                    member == me || !is_missed(at)
                });
                for (at, shard) in view.shards.values_mut().enumerate() {
                    if *shard != Shard::Mine && is_missed(at) {
                        *shard = Shard::Unknown;
                    }
                }
                view
            });
        }
        world.balance();
    }

    #[test]
    fn no_shard_moves_between_two_who_stay(world in world(), at in any::<prop::sample::Index>()) {
        let mut world = world;
        world.balance();
        let before = world.shards.clone();
        // One goes: what it held is all that changes hands.
        if world.members.len() > 1 {
            let gone = world.members.remove(at.index(world.members.len()));
            world.balance();
            for (name, holder) in &before {
                if holder.as_ref() != Some(&gone) {
                    prop_assert_eq!(&world.shards[name], holder);
                }
            }
        }
        // One comes, in whatever slot: what it gets is all that changes hands.
        let before = world.shards.clone();
        let new = id(99);
        world.members.insert(at.index(world.members.len() + 1), new.clone());
        let moved = world.balance();
        prop_assert_eq!(moved, world.held(&new));
        for (name, holder) in &world.shards {
            prop_assert!(*holder == Some(new.clone()) || *holder == before[name]);
        }
    }

    #[test]
    fn who_is_no_member_wants_nothing(world in world()) {
        prop_assert!(FairShare.decide(&world.view(&id(7_777))).is_empty());
    }

    #[test]
    fn nobody_wants_what_it_has_no_hope_of(world in world()) {
        let mut world = world;
        world.balance();
        for me in world.members.clone() {
            prop_assert!(FairShare.decide(&world.view(&me)).is_empty());
        }
    }
}

#[test]
fn shards_that_nobody_has_looked_at_are_tried_after_those_that_are_free() {
    let shards = BTreeMap::from([
        (name(0), Shard::Unknown),
        (name(1), Shard::Held(id(1))),
        (name(2), Shard::Free),
        (name(3), Shard::Held(id(9))),
    ]);
    let view = View { me: id(0), members: vec![id(0)], shards };
    // Instance 1 and 9 are no members: what they held will be free.
    assert_eq!(FairShare.decide(&view).acquire, [name(2), name(0), name(1), name(3)]);
    let view = View { members: vec![id(0), id(1)], ..view };
    assert_eq!(FairShare.decide(&view).acquire, [name(2), name(0)]);
}

#[test]
fn those_who_begin_together_do_not_meet() {
    let members: Vec<_> = (0..3).map(id).collect();
    let shards: BTreeMap<_, _> = (0..64).map(|at| (name(at), None)).collect();
    let mut world = World { members, shards };
    world.round(World::view);
    assert!(world.is_balanced(), "one round is enough");
}

/// What stands in each slot.
type Slots = Vec<Option<InstanceId>>;

/// What an instance knows that looks at the slots that it has to, until it has to look at no more.
fn look(slots: &Slots, me: &InstanceId, max: usize) -> Roster {
    let mut roster = Roster::new(me.clone(), max);
    // What it holds it knows without looking.
    for (own, _) in slots.iter().enumerate().filter(|(_, slot)| slot.as_ref() == Some(me)) {
        roster.see(own, SlotSeen::Mine);
    }
    let mut looked = 0;
    while looked < roster.watched() {
        let seen = match slots.get(looked).cloned().flatten() {
            None => SlotSeen::Free,
            Some(holder) if holder == *me => SlotSeen::Mine,
            Some(holder) => SlotSeen::Held(holder),
        };
        roster.see(looked, seen);
        looked += 1;
    }
    roster
}

/// Takes the slot that is wanted and gives back what is too much. False if nothing is to be done.
fn act(slots: &mut Slots, me: &InstanceId, max: usize) -> bool {
    let wanted = look(slots, me, max).wanted();
    if let Some(slot) = wanted {
        slots.resize(slots.len().max(slot + 1), None);
        assert_eq!(slots[slot].replace(me.clone()), None);
    }
    for slot in look(slots, me, max).surplus().collect::<Vec<_>>() {
        assert_eq!(slots[slot].take().as_ref(), Some(me));
    }
    wanted.is_some()
}

fn settle(slots: &mut Slots, max: usize) {
    for _ in 0..100 {
        let there: Vec<_> = slots.iter().flatten().cloned().collect();
        if !there.iter().fold(false, |any, me| act(slots, me, max) | any) {
            return;
        }
    }
    panic!("they move for ever: {slots:?}");
}

proptest! {
    #[test]
    fn everybody_finds_everybody_and_keeps_their_order(
        steps in prop::collection::vec((0..9_usize, any::<bool>()), 1..60),
    ) {
        let mut slots = Slots::new();
        for (who, settles) in steps {
            let (me, new) = (id(who), id(100));
            let there: Vec<_> = slots.iter().flatten().cloned().collect();
            if there.contains(&me) {
                slots.iter_mut().filter(|slot| **slot == Some(me.clone())).for_each(|it| *it = None);
            } else {
                prop_assert!(act(&mut slots, &me, 64));
            }
            // Several may go before the others move; whoever looks from above sees all the same.
            let order: Vec<_> = slots.iter().flatten().cloned().collect();
            if let Some(highest) = order.last() {
                prop_assert_eq!(look(&slots, highest, 64).members(), order.clone());
            }
            if settles {
                settle(&mut slots, 64);
                prop_assert_eq!(slots.iter().flatten().cloned().collect::<Vec<_>>(), order.clone());
                prop_assert_eq!(look(&slots, &new, 64).members(), order);
            }
        }
    }
}

#[test]
fn there_are_as_many_slots_as_there_are() {
    let mut slots = Slots::new();
    assert!(act(&mut slots, &id(0), 2) && act(&mut slots, &id(1), 2));
    assert!(!act(&mut slots, &id(2), 2));
    assert_eq!(slots, [Some(id(0)), Some(id(1))]);
    assert_eq!(look(&slots, &id(1), 2).watched(), 2);
}

#[test]
fn the_first_member_buries_an_orphan_above_all_others() {
    let roster = |me: usize| {
        let mut roster = Roster::new(id(me), 8);
        let seen = |other| if other == me { SlotSeen::Mine } else { SlotSeen::Held(id(other)) };
        roster.see(0, seen(0));
        roster.see(1, SlotSeen::Orphaned);
        roster.see(2, seen(2));
        roster.see(3, SlotSeen::Orphaned);
        roster
    };
    let (first, second) = (roster(0), roster(2));
    assert_eq!((first.orphan(), second.orphan()), (Some(3), None));
    assert_eq!((first.wanted(), second.wanted()), (None, Some(1)));
    assert_eq!((first.watched(), first.members()), (5, vec![id(0), id(2)]));
}

#[test]
fn a_slot_that_was_not_looked_at_is_not_jumped_over() {
    let mut roster = Roster::new(id(0), 8);
    assert_eq!(roster.wanted(), None);
    roster.see(1, SlotSeen::Free);
    assert_eq!(roster.wanted(), None);
    roster.see(0, SlotSeen::Held(id(1)));
    assert_eq!(roster.wanted(), Some(1));
    // One that is held twice counts once.
    roster.see(2, SlotSeen::Held(id(1)));
    assert_eq!(roster.members(), [id(1)]);
}
