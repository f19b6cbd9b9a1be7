//! Breaks the machine in every way that it can be told to, and shows what finds it out.
//!
//! ```console
//! cargo run --release --example mutants -- --runs 60000
//! ```
//!
//! The last line is `mutants=… caught=…`; the exit code is 1 if one was not caught.

mod shared;

use clap::Parser;
use comfy_table::Table;
use lease_core::testing::sim::mutants::{ALL, Catch, Mutant};
use shared::{bar, in_parallel};
use std::process::ExitCode;

#[derive(Parser, Debug)]
#[command(about = "Hunts each mutant of the lease machine until an invariant gives it away")]
struct Args {
    /// In how many worlds each is hunted at most.
    #[arg(long, default_value_t = 60_000)]
    runs: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let count = u64::try_from(ALL.len()).unwrap_or(u64::MAX);
    let bar = bar(count, "mutants");
    // One after another on each core: the slow ones are not next to each other in the list.
    let found: Vec<(&Mutant, Option<Catch>)> = in_parallel(0..count, |numbers| {
        let hunted = numbers.filter_map(|number| ALL.get(usize::try_from(number).ok()?));
        let found: Vec<_> = hunted
            .map(|mutant| {
                let caught = mutant.hunt(0..args.runs);
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
