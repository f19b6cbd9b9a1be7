//! A simulator of sessions: many hosts, many leases, one store, one seed.
//!
//! Each host runs the production [`SessionMachine`](crate::session::SessionMachine), with a real fence
//! for its session and one under it for each lease. Everything around them is simulated as in
//! [worlds of one lease](super), and goes wrong in the same ways; people also delete, garble and put back
//! session objects, and named leases too. Applications acquire, try, give up (also while an
//! acquisition is under way), release, watch and stop. After every step ten [invariants] must
//! hold. Then comes peace, in which every lease that somebody waits for must be held in time, and
//! change hands in time.
//!
//! ```
//! use lease_core::testing::sim::{Hazards, sessions::Simulation};
//!
//! let outcome = Simulation::new(7).hazards(Hazards::all()).run()?;
//! assert!(outcome.counts.opened > 0);
//! # Ok::<(), Box<lease_core::testing::sim::sessions::Failure>>(())
//! ```
//!
//! # What no world promises
//!
//! As for a single lease; and:
//!
//! - A named lease that people change is covered by its token alone, unless the cluster audits and what
//!   they leave there is nothing, or cannot be believed. The world says so
//!   ([`Step::TokenAlone`]), and claims nothing more of that lease.
//! - No epoch floor is asked for a lease. Wherever what is stored may be lost, epochs come from the
//!   clock, and nobody sets it.
//! - Where people delete leases, no creation of one lands long after it was reported as failed: nothing
//!   tells it from a new one.
//! - Where a directory was copied, no record of a session is put back: a life begins at once over a kill,
//!   and over a life that the process knows to be its own and over. A copy's life is not seen there.

mod hosts;
pub mod invariants;
pub mod mutants;
mod node;
mod report;
mod requests;
mod setting;
mod store;
mod trace;
mod troubles;
mod work;
mod world;

pub use invariants::{Invariant, Scene};
pub use report::{Failure, Outcome};
pub use setting::Setting;
pub use trace::{Move, Step, Tenure, Wish, time_line};
pub use world::Counts;

use self::world::World;
use super::{Dice, Hazards, Record, Violation, trace::Trace};
use crate::{machine::Protocol, session::SessionRules, timing::Timing};
use std::{fmt, marker::PhantomData, rc::Rc};

/// Makes the invariants that are added to the built-in ones, anew for each run.
type Extra = Rc<dyn Fn() -> Box<dyn Invariant>>;

/// One world of sessions, from one seed. See the [module](self).
///
/// `R` is which rules its machines keep: [`Protocol`] keeps them all, everything else is there to
/// show that the invariants find what is broken.
#[derive(Clone)]
pub struct Simulation<R: SessionRules = Protocol> {
    seed: u64,
    hazards: Hazards,
    timing: Option<Timing>,
    setting: Option<Setting>,
    extra: Vec<Extra>,
    rules: PhantomData<R>,
}

impl<R: SessionRules> fmt::Debug for Simulation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .field("hazards", &self.hazards)
            .field("timing", &self.timing)
            .field("setting", &self.setting)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// The world of `seed`, with every hazard allowed and machines that keep every rule.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            hazards: Hazards::all(),
            timing: None,
            setting: None,
            extra: Vec::new(),
            rules: PhantomData,
        }
    }
}

impl<R: SessionRules> Simulation<R> {
    /// The same world with machines that keep the rules `S`.
    #[must_use]
    pub fn keeping<S: SessionRules>(self) -> Simulation<S> {
        let Self { seed, hazards, timing, setting, extra, .. } = self;
        Simulation { seed, hazards, timing, setting, extra, rules: PhantomData }
    }

    /// The same with other hazards allowed. Which of them the world has is drawn from its seed.
    #[must_use]
    pub fn hazards(self, hazards: Hazards) -> Self {
        Self { hazards, ..self }
    }

    /// The same with this timing on every host, in place of one that is drawn.
    #[must_use]
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing: Some(timing), ..self }
    }

    /// The same with everything given that is drawn otherwise. The hazards in it are all there.
    #[must_use]
    pub fn setting(self, setting: Setting) -> Self {
        Self { setting: Some(setting), ..self }
    }

    /// The same with something more that must hold.
    #[must_use]
    pub fn invariant<I: Invariant + 'static>(mut self, make: impl Fn() -> I + 'static) -> Self {
        self.extra.push(Rc::new(move || Box::new(make())));
        self
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// [`Failure`]: what did not hold, when, and everything that led to it. To get the steps, the
    /// world is run a second time, which leads to the same end.
    pub fn run(&self) -> Result<Outcome, Box<Failure>> {
        let (counts, trace, violation, _) = self.run_with(Trace::default());
        match violation {
            None => Ok(Outcome { counts, digest: trace.digest() }),
            Some(_) => self.recorded().1,
        }
    }

    /// Runs it, and says only what did not hold, if anything.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.run_with(Trace::default()).2
    }

    /// Runs it with every step kept, for a time line of what went well.
    pub fn recorded(&self) -> (Vec<Record<Step>>, Result<Outcome, Box<Failure>>) {
        let (counts, trace, violation, setting) = self.run_with(Trace::recorded());
        let digest = trace.digest();
        let records = trace.into_records();
        let result = match violation {
            None => Ok(Outcome { counts, digest }),
            Some(violation) => {
                let (seed, records) = (self.seed, records.clone());
                Err(Box::new(Failure { seed, violation, setting, records }))
            }
        };
        (records, result)
    }

    fn run_with(&self, trace: Trace<Step>) -> (Counts, Trace<Step>, Option<Violation>, Setting) {
        let mut dice = Dice::new(self.seed);
        let drawn = Setting::drawn(self.hazards, self.timing, &mut dice);
        let setting = self.setting.clone().unwrap_or(drawn);
        let mut invariants = invariants::every();
        invariants.extend(self.extra.iter().map(|make| make()));
        let world = World::<R>::new(setting.clone(), dice, invariants, trace);
        let (counts, trace, violation) = world.run();
        (counts, trace, violation, setting)
    }
}
