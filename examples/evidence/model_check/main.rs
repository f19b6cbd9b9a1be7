//! Searches small worlds exhaustively: the production state machine, in every order of steps, with
//! everything that can go wrong at every step, up to so many times in one run.
//!
//! ```console
//! cargo run --release --example model_check
//! cargo run --release --example model_check -- --quick
//! cargo run --release --example model_check -- --mutant CreationNotHeldBack
//! cargo run --release --example model_check -- --mutants
//! ```
//!
//! The last line is `states=… counterexamples=…`; the exit code is 1 if something did not hold, or if
//! something that has to be reached was not. A counterexample is shown as a time line.

mod act;
mod check;
mod machine;
mod search;
mod setting;
mod settle;
mod step;
#[cfg(test)]
mod tests;
mod time_line;
mod world;

use act::Act;
use clap::Parser;
use comfy_table::Table;
use lease_core::{
    machine::{Protocol, Rules},
    testing::sim::mutants,
};
use machine::Kept;
use search::{Found, Search};
use setting::{Depth, Setting};
use stateright::{Model, Property};
use std::process::ExitCode;
use world::{Fence, World};

/// One world as a model whose states are searched.
#[derive(Clone, Debug)]
pub(crate) struct Failover {
    setting: Setting,
}

impl Failover {
    /// How many fences are open now. An overlap begins when a fence opens or is extended, and that
    /// happens at ticks only: what is open between two of them was open at the first.
    fn open_fences(&self, world: &World) -> usize {
        let hosts = world.hosts.iter().enumerate();
        let open = hosts.filter(|(number, host)| {
            let now = world.reading(&self.setting, *number);
            host.tenure
                .map_or(Fence::NotOpen, |tenure| tenure.fence)
                .is_open(now, &self.setting.kept)
        });
        open.count()
    }
}

impl Model for Failover {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        vec![self.beginning(None)]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        self.acts(world, acts);
    }

    fn next_state(&self, world: &World, act: Act) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, act, None);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        check::properties()
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.hosts.iter().map(|host| host.drawn).sum::<u32>() <= self.setting.writes
    }
}

#[derive(Parser, Debug)]
#[command(about = "Searches small worlds exhaustively and checks what must hold in each state")]
struct Args {
    /// Search less far: under a minute.
    #[arg(long)]
    quick: bool,
    /// Only the world of this name.
    #[arg(long)]
    world: Option<String>,
    /// How many ticks a run of that world has.
    #[arg(long, requires = "world")]
    ticks: Option<u16>,
    /// How many things go wrong in a run of it at most.
    #[arg(long, requires = "world")]
    faults: Option<u8>,
    /// Break the machine in one way: a counterexample is then a success of the check.
    #[arg(long)]
    mutant: Option<String>,
    /// Break it in every way, one after the other, and show which world gives which away.
    #[arg(long, conflicts_with = "mutant")]
    mutants: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let depth = if args.quick || args.mutants { Depth::Quick } else { Depth::Full };
    let mut settings = match setting::all(depth) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(name) = &args.world {
        settings.retain(|setting| setting.name == name);
        for setting in &mut settings {
            setting.ticks = args.ticks.unwrap_or(setting.ticks);
            setting.faults = args.faults.unwrap_or(setting.faults);
        }
    }
    if args.mutants {
        return break_every_rule(&settings);
    }
    let found = match &args.mutant {
        None => Some(search_all::<Protocol>(&settings, false)),
        Some(name) => mutants::visit(name, Worlds { settings: &settings, ends_early: true }),
    };
    let Some(found) = found else {
        let names: Vec<_> = mutants::ALL.iter().map(|mutant| mutant.name).collect();
        eprintln!("there is no such mutant; there are: {}", names.join(", "));
        return ExitCode::from(2);
    };
    report(&found)
}

struct Worlds<'a> {
    settings: &'a [Setting],
    ends_early: bool,
}

impl mutants::Visit for Worlds<'_> {
    type Output = Vec<Found>;

    fn visit<R: Rules>(self) -> Vec<Found> {
        search_all::<R>(self.settings, self.ends_early)
    }
}

fn search_all<R: Rules>(settings: &[Setting], ends_early: bool) -> Vec<Found> {
    let mut all = Vec::new();
    for setting in settings {
        let found = Search::of(&Setting { kept: Kept::by::<R>(), ..setting.clone() });
        eprintln!("{}: {} states in {:.1?}", found.world, found.states, found.took);
        let is_over = ends_early && !found.counterexamples.is_empty();
        all.push(found);
        if is_over {
            break;
        }
    }
    all
}

fn report(found: &[Found]) -> ExitCode {
    let mut table = Table::new();
    table.set_header(["world", "states", "depth", "seconds", "reached", "not reached"]);
    for it in found {
        table.add_row([
            it.world.to_owned(),
            it.states.to_string(),
            it.depth.to_string(),
            format!("{:.1}", it.took.as_secs_f64()),
            it.reached.join(", "),
            it.not_reached.join(", "),
        ]);
    }
    for it in found {
        for (property, time_line) in &it.counterexamples {
            println!("\"{property}\" does not hold in the world \"{}\":\n{time_line}", it.world);
        }
    }
    println!("{table}");
    let states: usize = found.iter().map(|it| it.states).sum();
    let counterexamples: usize = found.iter().map(|it| it.counterexamples.len()).sum();
    let not_reached: usize = found.iter().map(|it| it.not_reached.len()).sum();
    println!("states={states} counterexamples={counterexamples}");
    ExitCode::from(u8::from(counterexamples > 0 || not_reached > 0))
}

/// Which world gives which mutant away, and by what.
fn break_every_rule(settings: &[Setting]) -> ExitCode {
    let mut table = Table::new();
    table.set_header(["mutant", "protocol", "world", "counterexample to", "states"]);
    let mut caught = 0;
    for mutant in mutants::ALL {
        let worlds = Worlds { settings, ends_early: true };
        let found = mutants::visit(mutant.name, worlds).unwrap_or_default();
        let states: usize = found.iter().map(|it| it.states).sum();
        let last = found.last().and_then(|it| Some((it.world, it.counterexamples.first()?)));
        let (world, by) = match last {
            Some((world, (property, _))) => {
                caught += 1;
                (world, *property)
            }
            None => ("", "none in these worlds"),
        };
        table.add_row([mutant.name, mutant.section, world, by, &states.to_string()]);
    }
    println!("{table}");
    println!("mutants={} caught={caught}", mutants::ALL.len());
    ExitCode::from(u8::from(caught < 8))
}
