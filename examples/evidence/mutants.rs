//! Breaks the machine in every way that it can be told to, and shows what finds it out.
//!
//! ```console
//! cargo run --release --example mutants -- --runs 60000
//! cargo run --release --example mutants -- --sessions --runs 20000
//! ```
//!
//! The last line is `mutants=… caught=…`; the exit code is 1 if one was not caught.

mod shared;

use clap::Parser;
use comfy_table::Table;
use lease_core::testing::sim::{
    mutants::{ALL, Catch},
    sessions::mutants::ALL as SESSIONS,
};
use shared::{bar, in_parallel};
use std::{ops::Range, process::ExitCode};

#[derive(Parser, Debug)]
#[command(about = "Hunts each mutant of the lease machine until an invariant gives it away")]
struct Args {
    /// In how many worlds each is hunted at most.
    #[arg(long, default_value_t = 60_000)]
    runs: u64,
    /// Hunt those of sessions.
    #[arg(long)]
    sessions: bool,
}

/// A mutant of either kind.
struct Hunted {
    name: &'static str,
    section: &'static str,
    hunt: Box<dyn Fn(Range<u64>) -> Option<Catch> + Sync>,
}

fn hunted(sessions: bool) -> Vec<Hunted> {
    match sessions {
        true => SESSIONS
            .iter()
            .map(|mutant| Hunted {
                name: mutant.name,
                section: mutant.section,
                hunt: Box::new(|seeds| mutant.hunt(seeds)),
            })
            .collect(),
        false => ALL
            .iter()
            .map(|mutant| Hunted {
                name: mutant.name,
                section: mutant.section,
                hunt: Box::new(|seeds| mutant.hunt(seeds)),
            })
            .collect(),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let all = hunted(args.sessions);
    let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let bar = bar(count, "mutants");
    // One after another on each core: the slow ones are not next to each other in the list.
    let found: Vec<(&Hunted, Option<Catch>)> = in_parallel(0..count, |numbers| {
        let hunted = numbers.filter_map(|number| all.get(usize::try_from(number).ok()?));
        let found: Vec<_> = hunted
            .map(|mutant| {
                let caught = (mutant.hunt)(0..args.runs);
                bar.inc(1);
                (mutant, caught)
            })
            .collect();
        found
    })
    .into_iter()
    .flatten()
    .collect();
    bar.finish_and_clear();
    let mut table = Table::new();
    table.set_header(["mutant", "protocol", "caught by", "worlds", "seed"]);
    let mut caught = 0;
    for (mutant, catch) in &found {
        let row = match catch {
            Some(catch) => {
                caught += 1;
                let Catch { runs, seed, violation } = catch;
                [violation.invariant.to_owned(), runs.to_string(), seed.to_string()]
            }
            None => ["NOT CAUGHT".to_owned(), args.runs.to_string(), String::new()],
        };
        let [by, runs, seed] = row;
        table.add_row([mutant.name.to_owned(), mutant.section.to_owned(), by, runs, seed]);
    }
    println!("{table}");
    println!("mutants={} caught={caught}", found.len());
    ExitCode::from(u8::from(caught < found.len()))
}
