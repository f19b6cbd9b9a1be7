//! Worlds of sessions.
//!
//! `HOLDFAST_SESSIONS_SEED=17 cargo test -p lease-core --test sim sessions` runs one world and shows what
//! is wrong in it; `HOLDFAST_SESSIONS_SEEDS=100000` runs that many.

use crate::number;
use lease_core::{
    Timing,
    testing::sim::{
        Hazard, Hazards,
        sessions::{Invariant, Scene, Simulation, Step, mutants, time_line},
    },
};
use std::time::Duration;

#[test]
fn whatever_goes_wrong_every_invariant_of_sessions_holds() {
    let first = number("HOLDFAST_SESSIONS_SEED", 0);
    let count = number("HOLDFAST_SESSIONS_SEEDS", if first > 0 { 1 } else { 300 });
    let (mut opened, mut lives, mut killed, mut stale, mut failed) = (0, 0, 0, 0, Vec::new());
    for seed in first..first + count {
        match Simulation::new(seed).run() {
            Ok(outcome) => {
                opened += outcome.counts.opened;
                lives += outcome.counts.lives;
                killed += outcome.counts.killed;
                stale += outcome.counts.stale_writes_refused;
            }
            Err(failure) => {
                if failed.is_empty() {
                    println!("{failure}");
                }
                failed.push((seed, failure.violation.invariant, failure.violation.what));
            }
        }
    }
    println!("{count} worlds: {opened} tenures under {lives} lives, {killed} kills, {stale} stale");
    assert!(failed.is_empty(), "{} of {count}: {failed:#?}", failed.len());
    // Worlds in which nothing happens show nothing.
    assert!(count < 300 || opened > 5 * count && killed > count / 10 && stale > 0);
}

#[test]
fn with_nothing_going_wrong_no_session_ends() {
    for seed in 0..50 {
        let (records, result) = Simulation::new(seed).hazards(Hazards::none()).recorded();
        let outcome = result.unwrap_or_else(|failure| panic!("{failure}"));
        let hosts = records.iter().filter_map(|record| record.step.host()).max().unwrap() + 1;
        let counts = outcome.counts;
        assert_eq!(counts.lives, hosts as u64, "seed {seed}\n{}", time_line(&records));
        assert_eq!((counts.killed, counts.token_alone), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_seed_of_sessions_leads_to_the_same_steps_again() {
    for seed in 0..60 {
        let (once, again) =
            (Simulation::new(seed).run().unwrap(), Simulation::new(seed).recorded());
        assert_eq!(once, again.1.unwrap(), "seed {seed}");
        assert_eq!(once.counts.steps, again.0.len() as u64);
    }
    assert_ne!(Simulation::new(1).run().unwrap().digest, Simulation::new(2).run().unwrap().digest);
}

/// Those that are found soon; the example `mutants --sessions` hunts them all.
#[test]
fn what_is_broken_in_sessions_is_found_and_shown() {
    let mut caught = 0;
    for mutant in mutants::ALL {
        let Some(catch) = mutant.hunt(0..60) else { continue };
        caught += 1;
        println!("{}: {} in world {}", mutant.name, catch.violation.invariant, catch.seed);
        assert!(!catch.violation.what.is_empty());
        // The seed alone leads there again, and the production machine holds in that world.
        let again = mutant.hunt(catch.seed..catch.seed + 1).unwrap();
        assert_eq!(again.violation, catch.violation, "{}", mutant.name);
        mutant.world(catch.seed).run().unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(caught >= 6, "{caught} of {} mutants in 60 worlds", mutants::ALL.len());
}

/// Says no at the first tenure, as a test of one's own might.
struct NoTenure;

impl Invariant for NoTenure {
    fn name(&self) -> &'static str {
        "no tenure"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Acquired { tenure } => Err(format!("{tenure} at {:?}", scene.now)),
            _ => Ok(()),
        }
    }
}

#[test]
fn an_invariant_of_ones_own_is_told_of_sessions_and_a_timing_can_be_given() {
    let timing = Timing::short(Duration::from_secs(10), Duration::from_secs(1)).unwrap();
    let calm = Hazards::none().with(Hazard::Crash);
    let simulation = Simulation::new(3).hazards(calm).timing(timing);
    let failure = simulation.invariant(|| NoTenure).run().unwrap_err();
    assert_eq!(failure.violation.invariant, "no tenure");
    assert!(failure.setting.world.instances.iter().all(|it| *it == timing));
    let shown = failure.to_string();
    assert!(shown.starts_with("seed 3: \"no tenure\" does not hold at "), "{shown}");
    assert!(shown.contains("OPENS the fence of tenure "), "{shown}");
}
