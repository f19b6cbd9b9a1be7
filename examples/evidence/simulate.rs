//! Runs simulated worlds, one for each seed, on all cores.
//!
//! ```console
//! cargo run --release --example simulate -- --runs 20000 --first-seed 0
//! cargo run --release --example simulate -- --runs 1 --first-seed 17 --time-line
//! cargo run --release --example simulate -- --runs 2000 --mutant CreationNotHeldBack
//! ```
//!
//! The last line is `runs=… violations=…`; the exit code is 1 if something did not hold. A violation
//! is shown with its seed and what led to it.

mod shared;

use clap::Parser;
use lease_core::testing::sim::{Counts, Failure, Simulation, mutants, time_line};
use shared::{bar, in_parallel};
use std::process::ExitCode;

#[derive(Parser, Debug)]
#[command(about = "Runs simulated worlds and checks what must hold in each")]
struct Args {
    /// How many worlds.
    #[arg(long, default_value_t = 20_000)]
    runs: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Break the machine in one way: every violation is then a success of the check.
    #[arg(long)]
    mutant: Option<String>,
    /// Print everything that happens in the first world.
    #[arg(long)]
    time_line: bool,
}

#[derive(Default)]
struct Sums {
    runs: u64,
    opened: u64,
    written: u64,
    stale: u64,
    steps: u64,
    failures: Vec<Failure>,
}

impl Sums {
    fn add(&mut self, counts: Counts) {
        self.opened += counts.opened;
        self.written += counts.written;
        self.stale += counts.stale_writes_refused;
        self.steps += counts.steps;
    }

    fn join(mut self, other: Self) -> Self {
        self.runs += other.runs;
        self.opened += other.opened;
        self.written += other.written;
        self.stale += other.stale;
        self.steps += other.steps;
        self.failures.extend(other.failures);
        self
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let end = args.first_seed.saturating_add(args.runs);
    if let Some(name) = &args.mutant {
        return hunt(name, args.first_seed..end);
    }
    if args.time_line {
        let (records, result) = Simulation::new(args.first_seed).recorded();
        print!("{}", time_line(&records));
        if let Err(failure) = result {
            let violation = failure.violation;
            println!("\"{}\" does not hold: {}", violation.invariant, violation.what);
        }
    }
    let bar = bar(args.runs, "worlds");
    let parts = in_parallel(args.first_seed..end, |seeds| {
        let mut sums = Sums::default();
        for seed in seeds {
            match Simulation::new(seed).run() {
                Ok(outcome) => sums.add(outcome.counts),
                Err(failure) => sums.failures.push(*failure),
            }
            sums.runs += 1;
            bar.inc(1);
        }
        sums
    });
    bar.finish_and_clear();
    let mut sums = parts.into_iter().fold(Sums::default(), Sums::join);
    sums.failures.sort_by_key(|failure| failure.seed);
    if let Some(first) = sums.failures.first() {
        println!("{first}");
    }
    for failure in &sums.failures {
        let what = &failure.violation;
        println!("seed {}: \"{}\": {}", failure.seed, what.invariant, what.what);
    }
    println!(
        "{} tenures, {} writes of the lease, {} stale writes refused at the resource, {} steps",
        sums.opened, sums.written, sums.stale, sums.steps
    );
    println!("runs={} violations={}", sums.runs, sums.failures.len());
    ExitCode::from(u8::from(!sums.failures.is_empty()))
}

/// One mutant: the first world that gives it away.
fn hunt(name: &str, seeds: std::ops::Range<u64>) -> ExitCode {
    let Some(mutant) = mutants::ALL.iter().find(|mutant| mutant.name == name) else {
        let names: Vec<_> = mutants::ALL.iter().map(|mutant| mutant.name).collect();
        eprintln!("there is no mutant {name:?}; there are: {}", names.join(", "));
        return ExitCode::from(2);
    };
    let runs = seeds.end - seeds.start;
    match mutant.hunt(seeds) {
        Some(caught) => {
            let what = &caught.violation;
            println!(
                "seed {}: \"{}\" at {:?}: {}",
                caught.seed, what.invariant, what.at, what.what
            );
            println!("runs={} violations=1", caught.runs);
            ExitCode::from(1)
        }
        None => {
            println!("runs={runs} violations=0");
            ExitCode::SUCCESS
        }
    }
}
