//! Runs simulated worlds, one for each seed, on all cores.
//!
//! ```console
//! cargo run --release --example simulate -- --runs 20000 --first-seed 0
//! cargo run --release --example simulate -- --runs 1 --first-seed 17 --time-line
//! cargo run --release --example simulate -- --runs 2000 --mutant CreationNotHeldBack
//! cargo run --release --example simulate -- --sessions --runs 20000 --ratio 10
//! ```
//!
//! With `--sessions` the worlds are of sessions: many leases under one renewal each. The last line is `runs=… violations=…`; the exit code is 1 if something did not hold. A violation
//! is shown with its seed and what led to it.

mod shared;

use clap::Parser;
use lease_core::{
    Timing, TimingError,
    testing::sim::{
        Simulation, Violation, mutants,
        sessions::{self, mutants as session_mutants},
        time_line,
    },
};
use shared::{bar, in_parallel};
use std::{ops::Range, process::ExitCode, time::Duration};

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
    /// Run worlds of sessions.
    #[arg(long)]
    sessions: bool,
    /// With `--sessions`: T is so many times R on every host, in place of a ratio that is drawn. At
    /// least 3.
    #[arg(long, requires = "sessions", value_parser = clap::value_parser!(u32).range(3..=100))]
    ratio: Option<u32>,
}

/// What the worlds of one kind amount to.
#[derive(Default)]
struct Sums {
    runs: u64,
    /// Named figures, the same ones for each world of a kind.
    figures: Vec<(&'static str, u64)>,
    /// What did not hold: the seed, what, and how it came, as text.
    failures: Vec<(u64, Violation, String)>,
}

impl Sums {
    fn add(&mut self, figures: &[(&'static str, u64)]) {
        if self.figures.is_empty() {
            self.figures = figures.iter().map(|(name, _)| (*name, 0)).collect();
        }
        for (sum, (_, figure)) in self.figures.iter_mut().zip(figures) {
            sum.1 += figure;
        }
    }

    fn join(mut self, other: Self) -> Self {
        self.runs += other.runs;
        self.add(&other.figures);
        self.failures.extend(other.failures);
        self
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let end = args.first_seed.saturating_add(args.runs);
    let seeds = args.first_seed..end;
    if let Some(name) = &args.mutant {
        return hunt(name, seeds, args.sessions);
    }
    if args.sessions {
        return match args.ratio.map(timing).transpose() {
            Ok(timing) => run(&args, seeds, |seed, sums| of_sessions(seed, timing, sums)),
            Err(error) => {
                eprintln!("--ratio: {error}");
                ExitCode::from(2)
            }
        };
    }
    run(&args, seeds, of_one_lease)
}

/// T = 10 s and R as large a part of it as asked for.
fn timing(ratio: u32) -> Result<Timing, TimingError> {
    let ttl = Duration::from_secs(10);
    Timing::short(ttl, ttl / ratio)
}

fn run(args: &Args, seeds: Range<u64>, world: impl Fn(u64, &mut Sums) + Sync) -> ExitCode {
    if args.time_line {
        print_time_line(args);
    }
    let bar = bar(args.runs, "worlds");
    let parts = in_parallel(seeds, |seeds| {
        let mut sums = Sums::default();
        for seed in seeds {
            world(seed, &mut sums);
            sums.runs += 1;
            bar.inc(1);
        }
        sums
    });
    bar.finish_and_clear();
    let mut sums = parts.into_iter().fold(Sums::default(), Sums::join);
    sums.failures.sort_by_key(|(seed, ..)| *seed);
    if let Some((.., shown)) = sums.failures.first() {
        println!("{shown}");
    }
    for (seed, violation, _) in &sums.failures {
        println!("seed {seed}: \"{}\": {}", violation.invariant, violation.what);
    }
    let figures = sums.figures.iter().map(|(name, figure)| format!("{figure} {name}"));
    println!("{}", figures.collect::<Vec<_>>().join(", "));
    println!("runs={} violations={}", sums.runs, sums.failures.len());
    ExitCode::from(u8::from(!sums.failures.is_empty()))
}

fn of_one_lease(seed: u64, sums: &mut Sums) {
    match Simulation::new(seed).run() {
        Ok(outcome) => {
            let counts = outcome.counts;
            sums.add(&[
                ("tenures", counts.opened),
                ("writes of the lease", counts.written),
                ("stale writes refused at the resource", counts.stale_writes_refused),
                ("steps", counts.steps),
            ]);
        }
        Err(failure) => {
            sums.failures.push((seed, failure.violation.clone(), failure.to_string()));
        }
    }
}

fn of_sessions(seed: u64, timing: Option<Timing>, sums: &mut Sums) {
    match session_world(seed, timing).run() {
        Ok(outcome) => {
            let counts = outcome.counts;
            sums.add(&[
                ("tenures", counts.opened),
                ("lives of sessions", counts.lives),
                ("kills", counts.killed),
                ("writes", counts.written),
                ("stale writes refused at the resources", counts.stale_writes_refused),
                ("leases left to their token", counts.token_alone),
                ("steps", counts.steps),
            ]);
        }
        Err(failure) => {
            sums.failures.push((seed, failure.violation.clone(), failure.to_string()));
        }
    }
}

fn session_world(seed: u64, timing: Option<Timing>) -> sessions::Simulation {
    let world = sessions::Simulation::new(seed);
    match timing {
        Some(timing) => world.timing(timing),
        None => world,
    }
}

fn print_time_line(args: &Args) {
    let seed = args.first_seed;
    let violation = match args.sessions {
        true => {
            let timing = args.ratio.and_then(|ratio| timing(ratio).ok());
            let (records, result) = session_world(seed, timing).recorded();
            print!("{}", sessions::time_line(&records));
            result.err().map(|failure| failure.violation)
        }
        false => {
            let (records, result) = Simulation::new(seed).recorded();
            print!("{}", time_line(&records));
            result.err().map(|failure| failure.violation)
        }
    };
    if let Some(violation) = violation {
        println!("\"{}\" does not hold: {}", violation.invariant, violation.what);
    }
}

/// One mutant: the first world that gives it away.
fn hunt(name: &str, seeds: Range<u64>, is_session: bool) -> ExitCode {
    let runs = seeds.end - seeds.start;
    let (names, caught): (Vec<_>, _) = match is_session {
        true => {
            let found = session_mutants::ALL.iter().find(|mutant| mutant.name == name);
            let names = session_mutants::ALL.iter().map(|mutant| mutant.name);
            (names.collect(), found.map(|mutant| mutant.hunt(seeds)))
        }
        false => {
            let found = mutants::ALL.iter().find(|mutant| mutant.name == name);
            let names = mutants::ALL.iter().map(|mutant| mutant.name);
            (names.collect(), found.map(|mutant| mutant.hunt(seeds)))
        }
    };
    match caught {
        None => {
            eprintln!("there is no mutant {name:?}; there are: {}", names.join(", "));
            ExitCode::from(2)
        }
        Some(Some(caught)) => {
            let what = &caught.violation;
            println!(
                "seed {}: \"{}\" at {:?}: {}",
                caught.seed, what.invariant, what.at, what.what
            );
            println!("runs={} violations=1", caught.runs);
            ExitCode::from(1)
        }
        Some(None) => {
            println!("runs={runs} violations=0");
            ExitCode::SUCCESS
        }
    }
}
