//! A simulator of whole failovers: many hosts, one store, one seed.
//!
//! It runs the production [`Machine`](crate::machine::Machine) and real fences. Everything around
//! them is simulated: true time, the clocks of each host (of their own rate, set back and forth,
//! standing still in a suspend), processes that die and stand still, directories that are lost and
//! copied, requests that are lost, late, repeated and out of order, a store that fails, and people
//! who delete, garble and put back the lease. After every step twelve [invariants] must hold; after a
//! hazardous time comes peace, in which somebody must become active in time.
//!
//! Everything comes from the seed. A violation names it, and the same seed leads to the same steps:
//! [`Failure`] shows them as a time line.
//!
//! ```
//! use lease_core::testing::sim::{Hazards, Simulation};
//!
//! let outcome = Simulation::new(7).hazards(Hazards::all()).run()?;
//! assert!(outcome.counts.steps > 100);
//! # Ok::<(), Box<lease_core::testing::sim::Failure>>(())
//! ```
//!
//! # Your own failover
//!
//! Give it your [`Application`]: what your service does when it takes over, while it is active, and
//! where its writes go. Here one that writes without the token that its resource would need:
//!
//! ```
//! use lease_core::testing::sim::{Application, Hazard, Hazards, Host, Simulation};
//! use lease_core::{fencing::Epoch, machine::{EndReason, Predecessor}};
//! use std::{cell::Cell, rc::Rc, time::Duration};
//!
//! struct Careless { database: Rc<Cell<u64>> }     // whose write came last
//!
//! impl Application for Careless {
//!     fn taking_over(&mut self, _: &Predecessor, host: &mut Host<'_>) { host.confirm() }
//!     fn active(&mut self, host: &mut Host<'_>) { host.wake_after(Duration::from_millis(10), 0) }
//!     fn woken(&mut self, _: u64, host: &mut Host<'_>) {
//!         let Some(fence) = host.fence().filter(|fence| fence.is_open()) else { return };
//!         let (token, database) = (fence.epoch().as_u64(), Rc::clone(&self.database));
//!         // The write is on its way for as long as the network likes.
//!         let travel = host.dice().up_to(Duration::from_secs(40));
//!         host.write_later(travel, move || match database.replace(token) {
//!             newer if newer > token => Err(format!("{token} overwrote {newer}")),
//!             _ => Ok(()),
//!         });
//!         host.wake_after(Duration::from_secs(2), 0);
//!     }
//!     fn ended(&mut self, _: &EndReason, _: &mut Host<'_>) {}
//! }
//!
//! let mut failed = 0;
//! for seed in 0..50 {
//!     let simulation = Simulation::new(seed)
//!         .hazards(Hazards::none().with(Hazard::Crash).with(Hazard::Pause))
//!         .application(|| {
//!             let database = Rc::new(Cell::new(0));   // outlives every process of one world
//!             move |_host| Careless { database: Rc::clone(&database) }
//!         });
//!     failed += usize::from(simulation.run().is_err());
//! }
//! // An open fence alone does not hold back what is on its way already: a token at the resource does.
//! assert!(failed > 0);
//! ```
//!
//! # What no world promises
//!
//! A simulation that breaks what the protocol does not claim shows nothing. So these do not happen
//! together; each is said in the protocol's *what is not promised* too:
//!
//! - A record that was put back is not one's own last release (a restart would take that for the
//!   latest word), nor one that a standby saw within 2R; neither a release nor a takeover in flight
//!   lands on it; no reclaim; no suspend that the monotonic clock does not show. Nor do the same unreadable bytes come
//!   back.
//! - Wall clocks set by more than a second go together with an epoch floor wherever epochs may be
//!   lost; a suspend that only the wall clock shows does not meet one that is set back.
//! - Monotonic clocks are off by at most 8 %.

mod agenda;
mod application;
mod clock;
mod dice;
mod hazards;
mod hosts;
pub mod invariants;
mod link;
pub mod mutants;
mod node;
mod object;
mod report;
mod requests;
pub mod sessions;
mod trace;
mod troubles;
mod world;

pub use application::{Application, Host, Writer};
pub use dice::Dice;
pub use hazards::{Hazard, Hazards, Setting};
pub use invariants::{Invariant, Scene};
pub use report::{Failure, Outcome, Violation};
pub use trace::{Record, Step, Tenure, time_line};
pub use world::Counts;

use self::{trace::Trace, world::World};
use crate::machine::{Protocol, Rules};
use std::{fmt, marker::PhantomData, rc::Rc};

/// What the trace calls the end of a process.
const PROCESS_DIES: &str = "its process dies";

/// Makes the application of each process of one world.
type Processes = Box<dyn Fn(usize) -> Box<dyn Application>>;
/// Begins a world: whatever its processes share is made anew.
type Factory = Rc<dyn Fn() -> Processes>;
/// Makes the invariants that are added to the built-in ones, anew for each run.
type Extra = Rc<dyn Fn() -> Box<dyn Invariant>>;

/// One world, from one seed. See the [module](self).
///
/// `R` is which rules its machines keep: [`Protocol`] keeps them all, everything else is there to
/// show that the invariants find what is broken.
#[derive(Clone)]
pub struct Simulation<R: Rules = Protocol> {
    seed: u64,
    hazards: Hazards,
    setting: Option<Setting>,
    factory: Option<Factory>,
    extra: Vec<Extra>,
    rules: PhantomData<R>,
}

impl<R: Rules> fmt::Debug for Simulation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .field("hazards", &self.hazards)
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
            setting: None,
            factory: None,
            extra: Vec::new(),
            rules: PhantomData,
        }
    }
}

impl<R: Rules> Simulation<R> {
    /// The same world with machines that keep the rules `S`.
    #[must_use]
    pub fn keeping<S: Rules>(self) -> Simulation<S> {
        let Self { seed, hazards, setting, factory, extra, .. } = self;
        Simulation { seed, hazards, setting, factory, extra, rules: PhantomData }
    }

    /// The same with other hazards allowed. Which of them the world has is drawn from its seed.
    #[must_use]
    pub fn hazards(self, hazards: Hazards) -> Self {
        Self { hazards, ..self }
    }

    /// The same with everything given that is drawn otherwise. The hazards in it are all there.
    #[must_use]
    pub fn setting(self, setting: Setting) -> Self {
        Self { setting: Some(setting), ..self }
    }

    /// The same with another application. `begin` is called at the start of every run, and makes what
    /// all processes of that world share; what it returns makes one application for each process, and
    /// is told the number of its host. The default is a [`Writer`].
    #[must_use]
    pub fn application<A, M>(self, begin: impl Fn() -> M + 'static) -> Self
    where
        A: Application + 'static,
        M: Fn(usize) -> A + 'static,
    {
        let begin = move || -> Processes {
            let make = begin();
            Box::new(move |host| Box::new(make(host)))
        };
        Self { factory: Some(Rc::new(begin)), ..self }
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
    pub fn recorded(&self) -> (Vec<Record>, Result<Outcome, Box<Failure>>) {
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

    fn run_with(&self, trace: Trace) -> (Counts, Trace, Option<Violation>, Setting) {
        let mut dice = Dice::new(self.seed);
        let drawn = Setting::drawn(self.hazards, &mut dice);
        let setting = self.setting.clone().unwrap_or(drawn);
        let is_moody = setting.hazards.has(Hazard::Application);
        let processes = match &self.factory {
            Some(begin) => begin(),
            None => Box::new(move |_| {
                let writer = if is_moody { Writer::moody() } else { Writer::default() };
                Box::new(writer) as Box<dyn Application>
            }),
        };
        let mut invariants = invariants::every();
        invariants.extend(self.extra.iter().map(|make| make()));
        let world = World::<R>::new(setting.clone(), dice, processes, invariants, trace);
        let (counts, trace, violation) = world.run();
        (counts, trace, violation, setting)
    }
}
