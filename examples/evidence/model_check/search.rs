//! The search of one world.

use super::{Failover, check::Reached, setting::Setting};
use lease_core::fencing::{Clock as _, SystemClock};
use stateright::{Checker as _, Expectation, HasDiscoveries, Model as _};
use std::{num::NonZero, thread, time::Duration};

/// What the search of a world found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) world: &'static str,
    /// How many different states there are.
    pub(crate) states: usize,
    /// How many steps the longest of the shortest ways to a state has.
    pub(crate) depth: usize,
    pub(crate) took: Duration,
    pub(crate) reached: Vec<&'static str>,
    /// What should have been reached and was not.
    pub(crate) not_reached: Vec<&'static str>,
    /// What does not hold, each with the steps that show it.
    pub(crate) counterexamples: Vec<(&'static str, String)>,
}

pub(crate) struct Search;

impl Search {
    /// Searches a world to its end, or until something does not hold.
    pub(crate) fn of(setting: &Setting) -> Found {
        let clock = SystemClock::new();
        let begun = clock.monotonic();
        let model = Failover { setting: setting.clone() };
        let checker = model
            .clone()
            .checker()
            .threads(thread::available_parallelism().map_or(1, NonZero::get))
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        let mut reached = Vec::new();
        let mut counterexamples = Vec::new();
        let discoveries = checker.discoveries();
        for property in model.properties() {
            let Some(path) = discoveries.get(property.name) else { continue };
            match property.expectation {
                Expectation::Sometimes => reached.push(property.name),
                _ => {
                    let acts = path.clone().into_actions();
                    counterexamples.push((property.name, model.time_line(&acts)));
                }
            }
        }
        let is_missing = |it: &Reached| !reached.contains(&it.name());
        let not_reached = setting.shows.iter().copied().filter(is_missing).map(Reached::name);
        Found {
            world: setting.name,
            states: checker.unique_state_count(),
            depth: checker.max_depth(),
            took: clock.monotonic() - begun,
            not_reached: not_reached.collect(),
            reached,
            counterexamples,
        }
    }
}
