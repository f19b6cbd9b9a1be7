//! The simulator: worlds in which everything holds, worlds that show what is broken, and replay.
//!
//! `HOLDFAST_SEED=17 cargo test -p lease-core --test sim` runs one world and shows what is wrong in it;
//! `HOLDFAST_SEEDS=100000` runs that many. The example `simulate` does so on all cores.

mod sessions;

use lease_core::{
    Timing,
    testing::sim::{
        Dice, Hazard, Hazards, Invariant, Scene, Setting, Simulation, Step, mutants, time_line,
    },
};
use std::time::Duration;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn whatever_goes_wrong_every_invariant_holds() {
    let first = number("HOLDFAST_SEED", 0);
    let count = number("HOLDFAST_SEEDS", if first > 0 { 1 } else { 1_000 });
    let (mut opened, mut troubles, mut stale) = (0, 0, 0);
    for seed in first..first + count {
        let outcome = Simulation::new(seed).run().unwrap_or_else(|failure| panic!("{failure}"));
        opened += outcome.counts.opened;
        troubles += outcome.counts.troubles;
        stale += outcome.counts.stale_writes_refused;
    }
    println!("{count} worlds: {opened} tenures, {troubles} troubles, {stale} stale writes refused");
    // Worlds in which nothing happens show nothing.
    assert!(count < 1_000 || opened > 2 * count && troubles > 10 * count && stale > 0);
}

#[test]
fn with_nothing_going_wrong_one_tenure_lasts() {
    for seed in 0..50 {
        let (records, result) = Simulation::new(seed).hazards(Hazards::none()).recorded();
        assert_eq!(result.unwrap().counts.opened, 1, "seed {seed}\n{}", time_line(&records));
    }
}

#[test]
fn a_seed_leads_to_the_same_steps_again() {
    for seed in 0..200 {
        let (once, again) =
            (Simulation::new(seed).run().unwrap(), Simulation::new(seed).recorded());
        assert_eq!(once, again.1.unwrap(), "seed {seed}");
        assert_eq!(once.counts.steps, again.0.len() as u64);
    }
    assert_ne!(Simulation::new(1).run().unwrap().digest, Simulation::new(2).run().unwrap().digest);
}

/// Those that are found soon; the example `mutants` hunts them all.
#[test]
fn what_is_broken_is_found_and_shown() {
    let mut caught = 0;
    for mutant in mutants::ALL {
        let Some(catch) = mutant.hunt(0..60) else { continue };
        caught += 1;
        assert!(catch.runs <= 60 && catch.seed < 60);
        assert!(!catch.violation.what.is_empty());
        // The seed alone leads there again, and the production machine holds in that world.
        let again = mutant.hunt(catch.seed..catch.seed + 1).unwrap();
        assert_eq!(again.violation, catch.violation, "{}", mutant.name);
        mutant.world(catch.seed).run().unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(caught >= 14, "{caught} of {} mutants in 60 worlds", mutants::ALL.len());
}

/// Says no at the first tenure, as a test of one's own might.
struct NoTenure;

impl Invariant for NoTenure {
    fn name(&self) -> &'static str {
        "no tenure"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Opened { tenure, .. } => Err(format!("{tenure} at {:?}", scene.now)),
            _ => Ok(()),
        }
    }
}

#[test]
fn an_invariant_of_ones_own_is_told_everything_and_a_failure_shows_how_it_came() {
    let failure = Simulation::new(3).invariant(|| NoTenure).run().unwrap_err();
    assert_eq!(failure.violation.invariant, "no tenure");
    let shown = failure.to_string();
    assert!(shown.starts_with("seed 3: \"no tenure\" does not hold at "), "{shown}");
    assert!(shown.contains("TAKES tenure 1") && shown.contains("OPENS the fence"), "{shown}");
}

#[test]
fn a_world_can_be_given_as_well_as_drawn() {
    let timing = Timing::short(Duration::from_secs(10), Duration::from_millis(500)).unwrap();
    let hazards = Hazards::none().with(Hazard::Crash).with(Hazard::Delete);
    for seed in 0..50 {
        let mut setting = Setting::uniform(3, timing, hazards, &mut Dice::new(seed));
        setting.hazards = hazards;
        let outcome = Simulation::new(seed).setting(setting).run();
        assert!(outcome.unwrap_or_else(|failure| panic!("{failure}")).counts.troubles > 0);
    }
}
