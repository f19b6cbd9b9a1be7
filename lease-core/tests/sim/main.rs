//! The simulator: worlds in which everything holds, worlds that show what is broken, and replay.

use lease_core::testing::sim::Simulation;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn whatever_goes_wrong_every_invariant_holds() {
    let (first, count) = (number("HOLDFAST_SEED", 0), number("HOLDFAST_SEEDS", 2_000));
    let mut failed = 0;
    let (mut opened, mut troubles, mut steps) = (0, 0, 0);
    for seed in first..first + count {
        match Simulation::new(seed).run() {
            Ok(outcome) => {
                opened += outcome.counts.opened;
                troubles += outcome.counts.troubles;
                steps += outcome.counts.steps;
            }
            Err(failure) if std::env::var("HOLDFAST_ALL").is_ok() => {
                failed += 1;
                println!("{}", failure.to_string().lines().next().unwrap());
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{count} worlds: {opened} tenures, {troubles} troubles, {steps} steps");
    assert_eq!(failed, 0);
}

#[test]
fn every_mutant_is_caught() {
    use lease_core::testing::sim::mutants;
    let most = number("HOLDFAST_MUTANT_SEEDS", 3_000);
    let mut missed = Vec::new();
    for mutant in mutants::ALL {
        match mutant.hunt(0..most) {
            Some(caught) => println!(
                "{:28} {:3} caught by {:26} in {:5} worlds (seed {})",
                mutant.name, mutant.section, caught.violation.invariant, caught.runs, caught.seed
            ),
            None => {
                println!("{:28} {:3} NOT caught in {most} worlds", mutant.name, mutant.section);
                missed.push(mutant.name);
            }
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
