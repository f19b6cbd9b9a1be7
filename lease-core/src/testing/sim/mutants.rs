//! Machines that lack one rule each, to show that the invariants find what is broken.
//!
//! A check that catches nothing proves nothing. Each mutant is the production machine with one rule
//! of the protocol switched off (see [`Rules`]); [`Mutant::hunt`] runs worlds until an invariant
//! fails.

use super::{Hazard, Hazards, Simulation, Violation};
use crate::machine::{Protocol, Rules};
use std::ops::Range;

/// One broken machine.
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

/// What gave a mutant away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Catch {
    /// How many worlds were run, the one that shows it included.
    pub runs: u64,
    /// The seed of that world.
    pub seed: u64,
    /// What did not hold in it.
    pub violation: Violation,
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

impl Catch {
    pub(super) fn hunt(seeds: Range<u64>, run: impl Fn(u64) -> Option<Violation>) -> Option<Self> {
        let first = seeds.start;
        seeds
            .into_iter()
            .find_map(|seed| run(seed).map(|violation| (seed, violation)))
            .map(|(seed, violation)| Self { runs: seed - first + 1, seed, violation })
    }
}

/// Something that can be done with machines that keep any rules: what else a mutant is shown to, such
/// as a model checker.
pub trait Visit {
    /// What comes of it.
    type Output;

    /// Does it with machines that keep the rules `R`.
    fn visit<R: Rules>(self) -> Self::Output;
}

fn run<R: Rules>(world: Simulation<Protocol>) -> Option<Violation> {
    world.keeping::<R>().violation()
}

macro_rules! mutants {
    ($($name:ident, $section:literal, [$($hazard:ident),*], $($rule:ident),+;)+) => {
        $(
            #[doc = concat!("Lacks a rule of section ", $section, ".")]
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
            struct $name;

            impl Rules for $name {
                $(const $rule: bool = false;)+
            }
        )+

        /// Every mutant of a lease.
        pub const ALL: &[Mutant] = &[
            $(Mutant {
                name: stringify!($name),
                section: $section,
                hazards: &[$(Hazard::$hazard),*],
                run: run::<$name>,
            },)+
        ];

        /// Shows the mutant of this name to `visitor`; `None` if there is none.
        pub fn visit<V: Visit>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $(stringify!($name) => Some(visitor.visit::<$name>()),)+
                _ => None,
            }
        }
    };
}

mutants! {
    WallClockIgnored, "1", [Suspend], WALL_CLOCK_IS_LOOKED_AT;
    MarginOfROnly, "2", [], MARGIN_AT_LEAST_A_FIFTH;
    RecordsTtlIgnored, "2", [LostHistory, Partition, Pause], WAIT_COVERS_THE_RECORDS_TTL;
    LargestTtlIgnored, "2", [Delete, Garbage, LostHistory, Partition, PutBack], WAIT_COVERS_THE_CLUSTERS_TTL;
    BlindGapIgnored, "2", [Partition, Pause, PutBack], BLIND_GAP_RESTARTS;
    ValidAtTheDeadline, "2", [Outage, Partition], DEADLINE_IS_HALF_OPEN;
    ValidFromTheReply, "2", [], VALID_FROM_SENDING;
    SeenFromTheRequest, "2", [Link, Partition, Rate], SEEN_FROM_THE_ANSWER;
    LateAnswersRevive, "2", [], DEADLINE_COMES_FIRST, FENCE_NEVER_OPENS_AGAIN;
    NonceIgnored, "3", [Clone, Late, Link], NONCE_DECIDES;
    AdoptedWithTheLaterSending, "3", [], ADOPTED_WITH_ITS_OWN_SENDING;
    DoubtIsLoss, "3", [], DOUBT_IS_RESOLVED;
    ConflictIsLoss, "3", [], CONFLICT_IS_LOOKED_INTO;
    CreationNotHeldBack, "4", [], CREATION_IS_HELD_BACK;
    AnyReleaseTrusted, "4", [Application, Crash, LostHistory, PutBack], RELEASE_NEEDS_EVIDENCE;
    OlderReleaseTaken, "4", [Application, Partition, PutBack], OLDER_RELEASE_IS_WAITED_OUT, RELEASE_NEEDS_EVIDENCE;
    HeldBackIsReleased, "4", [Application, Delete, Partition, Pause], HELD_BACK_IS_NEVER_RELEASED;
    ReleasedBeforeShut, "4", [], SHUT_BEFORE_THE_RELEASE;
    OpenBeforeTheHistory, "4", [], HISTORY_BEFORE_OPENING;
    ReclaimsAnything, "4", [], RECLAIM_ONLY_WHAT_WAS_OPENED;
    ReclaimsWhatACloneWrote, "4", [Clone, Crash, Delete, Pause], RECLAIM_ONLY_ONES_OWN_TENURE;
    ReclaimsFromACopy, "4", [], RECLAIM_NEEDS_THE_SAME_LOCK;
    FenceOpensAgain, "4", [], FENCE_NEVER_OPENS_AGAIN;
    TakeoverWithoutIfMatch, "4", [], TAKEOVER_IS_CONDITIONAL;
    ReleaseByDelete, "4", [], RELEASE_KEEPS_THE_OBJECT;
    EpochBelowWhatWasSeen, "5", [], EPOCH_IS_ABOVE_WHAT_WAS_SEEN;
    ClockIsNoFloor, "5", [], CLOCK_IS_A_FLOOR;
    FloorBeforeTheTakeoverOnly, "5", [], FLOOR_BEFORE_OPENING;
    ForgedEpochsCount, "5", [], UNACCEPTABLE_EPOCHS_ARE_IGNORED;
    UnacceptableIsTakenAtOnce, "6", [], UNACCEPTABLE_IS_WAITED_OUT;
}
