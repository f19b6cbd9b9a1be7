//! Sessions that lack one rule each, to show that the invariants find what is broken.
//!
//! Each mutant is the production machine of a session with one rule of section 9 switched off (see
//! [`SessionRules`]); [`Mutant::hunt`] runs worlds until an invariant fails.

use super::{
    super::{Hazard, Hazards, Violation, mutants::Catch},
    Simulation,
};
use crate::{
    machine::{Protocol, Rules},
    session::SessionRules,
};
use std::ops::Range;

/// One broken session.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// The section of the protocol whose rule it lacks.
    pub section: &'static str,
    /// What goes wrong in the worlds that it is hunted in, at most; anything, if nothing is named.
    pub hazards: &'static [Hazard],
    run: fn(Simulation<Protocol>) -> Option<Violation>,
}

impl Mutant {
    /// The world of `seed` that it is hunted in, with machines that keep every rule.
    #[must_use]
    pub fn world(&self, seed: u64) -> Simulation {
        let named = self.hazards.iter().fold(Hazards::none(), |all, hazard| all.with(*hazard));
        Simulation::new(seed).hazards(if self.hazards.is_empty() { Hazards::all() } else { named })
    }

    /// Runs the worlds of these seeds until something does not hold.
    #[must_use]
    pub fn hunt(&self, seeds: Range<u64>) -> Option<Catch> {
        Catch::hunt(seeds, |seed| (self.run)(self.world(seed)))
    }
}

fn run<R: SessionRules>(world: Simulation<Protocol>) -> Option<Violation> {
    world.keeping::<R>().violation()
}

macro_rules! mutants {
    ($($name:ident, [$($hazard:ident),*], $($rule:ident),+;)+) => {
        $(
            #[doc = "Lacks a rule of section 9."]
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
            struct $name;

            impl Rules for $name {}

            impl SessionRules for $name {
                $(const $rule: bool = false;)+
            }
        )+

        /// Every mutant of a session.
        pub const ALL: &[Mutant] = &[
            $(Mutant {
                name: stringify!($name),
                section: "9",
                hazards: &[$(Hazard::$hazard),*],
                run: run::<$name>,
            },)+
        ];
    };
}

mutants! {
    EarlierLifeFrees, [Partition, PutBack], ONLY_A_LATER_LIFE_FREES;
    HeldBackLifeFrees, [Clone, Delete, Partition], HELD_BACK_LIFE_FREES_NOTHING;
    TombstoneBelieved, [Delete, Partition], TOMBSTONE_FREES_NOTHING;
    UnacceptableSessionFrees, [Forge, Partition], UNACCEPTABLE_SESSION_FREES_NOTHING;
    MissingSessionTakenAtOnce, [Delete, Partition], MISSING_SESSION_GETS_A_TOMBSTONE;
    SessionWatchedForR, [Partition, Pause], SESSION_IS_WATCHED_FOR_W;
    TakenWithoutAKill, [Link, Outage, Partition, Rate], KILL_BEFORE_TAKE;
    TenureFromAReading, [Application, Late, Link], TENURE_NEEDS_A_WRITE;
    ReleaseNotRepeated, [Link], RELEASE_IS_REPEATED;
    GivenUpNotFollowed, [Late, Link], GIVEN_UP_IS_FOLLOWED;
    DoesNotKeepOut, [], KEEPS_OUT_AFTER_RELEASE;
    AuditFenceNotShut, [Delete, Partition], AUDIT_SHUTS_THE_FENCE;
    NotHeldBackUnderAudit, [Delete, Garbage, Partition], AUDIT_HOLDS_BACK;
    HoldBackNotHandedOn, [Application, Delete, Partition], HOLD_BACK_IS_HANDED_ON;
    LeasesOutliveTheSession, [Partition, Pause], LEASES_END_WITH_THE_SESSION;
}
