//! That the search finds what is broken, in worlds that are small enough for a build without
//! optimisation. The whole list: `--mutants`.

use super::{
    Kept,
    search::{Found, Search},
    setting::{self, Depth, Setting},
};
use lease_core::{
    machine::{Protocol, Rules},
    testing::sim::mutants::{self, Visit},
};

fn world(name: &str, ticks: u16, faults: u8) -> Setting {
    let all = setting::all(Depth::Quick).unwrap();
    let found = all.into_iter().find(|setting| setting.name == name).unwrap();
    Setting { ticks, faults, ..found }
}

struct Searched(Setting);

impl Visit for Searched {
    type Output = Found;

    fn visit<R: Rules>(self) -> Found {
        Search::of(&Setting { kept: Kept::by::<R>(), ..self.0 })
    }
}

/// The mutant is given away in the world, by that property, and in no world of that size by a machine
/// that keeps every rule.
fn is_given_away(mutant: &str, world: &Setting, property: &str) {
    let found = mutants::visit(mutant, Searched(world.clone())).unwrap();
    let shown = found.counterexamples.iter().find(|(name, _)| *name == property);
    let (_, time_line) = shown.unwrap_or_else(|| panic!("{mutant}: {:?}", found.counterexamples));
    assert!(time_line.contains("OPENS the fence of tenure 1"), "{time_line}");
    let kept = Searched(world.clone()).visit::<Protocol>();
    assert!(kept.counterexamples.is_empty(), "in the world {:?}", world.name);
    assert!(kept.states > found.states / 2, "{} and {} states", kept.states, found.states);
}

#[test]
fn a_creation_that_is_not_held_back_is_given_away() {
    let world = world("first start", 3, 1);
    let world = Setting { starts_held: true, ..world };
    is_given_away("CreationNotHeldBack", &world, "one open fence at any true instant");
}

#[test]
fn a_release_before_the_fence_is_shut_is_given_away() {
    is_given_away("ReleasedBeforeShut", &world("three", 1, 1), "no write under a lost epoch");
}

#[test]
fn a_renewal_that_is_valid_from_its_answer_is_given_away() {
    is_given_away("ValidFromTheReply", &world("doubt", 5, 1), "no deadline beyond S + T - M");
}
