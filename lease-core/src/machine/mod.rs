//! The state machine of one instance: sans-IO, driven by whoever owns it.
//!
//! ```text
//!              acquire                         confirm
//!   Standby ───────────────► TakingOver ────────────────────► Active
//!      ▲                         │  abandon: release, wait T     │
//!      └─────────────────────────┴───────────────────────────────┘
//!             lost · expired · released · dropped · stopped
//! ```
//!
//! It never reads a clock, never does I/O, and knows no async runtime. Four kinds of methods:
//!
//! - *Inputs*, `handle_*`: something happened, and it is `now`. Each one is preceded by the deadline
//!   check at the same `now`, so no input can act on a tenure whose time is up.
//! - *Outputs*, polled until they return `None`: [`Machine::poll_action`] says what to do,
//!   [`Machine::poll_event`] what happened, [`Machine::poll_timeout`] when to call
//!   [`Machine::handle_timeout`] if nothing else happens before.
//! - *Mutators* that carry the application's wishes: [`Machine::want`], [`Machine::confirm`],
//!   [`Machine::abandon`], [`Machine::release`], [`Machine::drop_tenure`], [`Machine::stop`].
//! - *Getters*, which change nothing: [`Machine::role`], [`Machine::epoch`], …
//!
//! After any input or mutator: poll all actions, then all events, then the time-out.
//!
//! **The contract about time**: `now` never goes back (its monotonic part); it is read just before
//! the call, so that a write is counted from before it was sent; and the clock is looked at *before*
//! the answer to a request is handed in, however that answer came. A call that comes late is safe:
//! what should have happened meanwhile happens first.
//!
//! ```
//! use lease_core::{
//!     key::InstanceId, record::Nonce, timing::Timing,
//!     fencing::{Clock, testing::ManualClock},
//!     machine::{Action, Config, Entropy, Machine, Past, Reply, Request, Role, Sighting},
//!     store::Version,
//! };
//! use std::time::Duration;
//!
//! struct Counting(u128);                          // a test's entropy; real ones ask the system
//! impl Entropy for Counting {
//!     fn nonce(&mut self) -> Nonce {
//!         self.0 += 1;
//!         Nonce::from_bytes(self.0.to_be_bytes())
//!     }
//! }
//!
//! let clock = ManualClock::new();
//! let timing = Timing::short(Duration::from_secs(10), Duration::from_secs(2))?;
//! let config = Config::new(InstanceId::new("a")?, timing);
//! let mut machine: Machine = Machine::new(config, Past::default(), clock.reading());
//! let mut entropy = Counting(0);
//!
//! machine.want(true, clock.reading());
//! let Some(Action::Send(read, Request::Read { .. })) =
//!     machine.poll_action(clock.reading(), &mut entropy) else { panic!() };
//! machine.handle_reply(read, Reply::Read(Sighting::Missing), clock.reading());
//! let Some(Action::Send(create, Request::Create(_))) =
//!     machine.poll_action(clock.reading(), &mut entropy) else { panic!() };
//! machine.handle_reply(create, Reply::Written(Version::new("v1")), clock.reading());
//! assert_eq!(machine.role(), Role::TakingOver);   // held back: the lease was missing
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod beside;
mod config;
mod core;
mod doubt;
mod event;
mod floor;
mod holding;
mod inherited;
mod io;
mod known;
mod opening;
mod phase;
mod release;
mod rules;
mod seen;
mod standby;

pub use config::{Config, EpochOrigin, FirstStart, Past, TrustRelease};
pub use event::{
    AbandonReason, Attempted, EndReason, Event, LeaseSeen, Predecessor, WaitReason, Waiting,
};
pub use inherited::Inherited;
pub use io::{
    Action, Draft, Entropy, Facts, FenceOrder, Note, Reply, Request, RequestId, Sighting,
};
pub use rules::{Protocol, Rules};

use self::{
    core::Core,
    holding::{Holding, Stage, Taken},
    standby::Standby,
};
use crate::{record::SnapshotMark, store::StoreErrorKind};
use fencing::{Epoch, MonotonicTime, Reading};
use std::time::Duration;

/// The lease as one instance sees it. See the [module](self) for how to drive it.
///
/// It is `Clone + Eq + Hash` and holds no key, so that a model checker can keep its states.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine<R: Rules = Protocol> {
    core: Core<R>,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Holding(Box<Holding>),
    /// The store refused conditional writes for good.
    Refused,
    Standby(Box<Standby>),
    Stopped,
}

/// What a state asks for beyond itself.
enum Transition {
    /// The tenure is over; the next read tells why, if its epoch is given.
    End {
        obituary: Option<Epoch>,
    },
    /// The store refuses conditional writes.
    Refuse,
    Take(Taken),
}

/// What an instance is right now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Role {
    /// It holds the lease and its fence is open.
    Active,
    /// The store refused conditional writes; it will do nothing more.
    Refused,
    /// Its fence is shut and it is giving the lease back.
    Releasing,
    /// It reads, and waits.
    Standby,
    /// It was stopped.
    Stopped,
    /// It holds the lease, but its fence is not open yet.
    TakingOver,
}

impl<R: Rules> Machine<R> {
    /// A machine that starts as standby, also if its history shows that it held the lease before.
    #[must_use]
    pub fn new(config: Config, past: Past, now: Reading) -> Self {
        let core = Core::new(config, past, now.monotonic);
        let standby = Standby::new(&core.config.timing, now.monotonic, None);
        Self { core, state: State::Standby(Box::new(standby)) }
    }

    // ---- inputs ----

    /// Time has passed. Call it at [`Machine::poll_timeout`]; earlier or later does no harm.
    pub fn handle_timeout(&mut self, now: Reading) {
        self.enter(now);
    }

    /// The answer to [`Action::Send`]. One that nobody waits for any more changes nothing.
    pub fn handle_reply(&mut self, id: RequestId, reply: Reply, now: Reading) {
        if R::DEADLINE_COMES_FIRST {
            self.enter(now);
        }
        let (core, at) = (&mut self.core, now.monotonic);
        let transition = match (&mut self.state, reply) {
            (State::Holding(holding), Reply::Read(sighting)) => {
                holding.read(core, id, Ok(sighting), at)
            }
            (State::Holding(holding), Reply::Written(version)) => {
                holding.written(core, id, Ok(version), now)
            }
            (State::Holding(holding), Reply::Failed(error)) => holding
                .read(core, id, Err(error), at)
                .or_else(|| holding.written(core, id, Err(error), now)),
            (State::Standby(standby), Reply::Read(sighting)) => {
                standby.read(core, id, Ok(sighting), at)
            }
            (State::Standby(standby), Reply::Written(version)) => {
                standby.written(core, id, Ok(version), at)
            }
            (State::Standby(standby), Reply::Failed(error)) => standby
                .read(core, id, Err(error), at)
                .or_else(|| standby.written(core, id, Err(error), at)),
            (State::Refused | State::Stopped, _) => None,
        };
        self.apply(transition, now);
    }

    /// The answer to [`Action::Persist`]: it is on disk, or it is not.
    pub fn handle_persisted(&mut self, id: RequestId, ok: bool, now: Reading) {
        self.enter(now);
        if self.core.marks_persisted(id, ok, now.monotonic) {
            return;
        }
        if let State::Holding(holding) = &mut self.state {
            let transition = holding.persisted(&mut self.core, id, ok, now.monotonic);
            self.apply(transition, now);
        }
    }

    /// The answer to [`Action::FetchFloor`]: every epoch that authenticated snapshots prove is at
    /// most this one (`Ok(None)`: there are none), or it could not be told.
    pub fn handle_floor(
        &mut self,
        id: RequestId,
        told: Result<Option<Epoch>, StoreErrorKind>,
        now: Reading,
    ) {
        self.enter(now);
        match &mut self.state {
            State::Holding(holding) => {
                let transition = holding.floor_told(&mut self.core, id, told, now.monotonic);
                self.apply(transition, now);
            }
            State::Standby(standby) => standby.floor(&mut self.core, id, told, now.monotonic),
            State::Refused | State::Stopped => {}
        }
    }

    /// The fence of this tenure refused an order, since it is shut for good.
    ///
    /// A fence looks at the clocks by itself, later than the machine does, and latches what it sees:
    /// a deadline that passed while the order was on its way, or a wall clock that was set forward and
    /// back. The tenure is over then. Otherwise a lease would be renewed for ever under which nobody
    /// may act.
    pub fn handle_fence_shut(&mut self, epoch: Epoch, now: Reading) {
        self.with_holding(now, |holding, core| holding.fence_shut(core, epoch, now.monotonic));
    }

    // ---- mutators ----

    /// Whether somebody wants the lease. A standby that is not wanted only watches.
    pub fn want(&mut self, wanted: bool, now: Reading) {
        self.enter(now);
        self.core.wanted = wanted;
    }

    /// The application has taken over: the fence may open, once nothing holds it back.
    pub fn confirm(&mut self, now: Reading) {
        self.enter(now);
        if let State::Holding(holding) = &mut self.state {
            holding.confirm();
        }
    }

    /// The application cannot take over: the lease is released (or, held back, left to expire), and
    /// this instance keeps out of the next takeover for T. Does nothing once the fence is open.
    pub fn abandon(&mut self, reason: AbandonReason, now: Reading) {
        self.with_holding(now, |holding, core| holding.abandon(core, reason, now.monotonic));
    }

    /// The lease names this snapshot as the newest from now on, and is written at once. Call it once
    /// the snapshot is stored, and before [`confirm`](Self::confirm) with the one that was restored.
    ///
    /// An active instance never names an older one than before; a takeover names what it restored.
    pub fn name_snapshot(&mut self, mark: SnapshotMark, now: Reading) {
        self.enter(now);
        if let State::Holding(holding) = &mut self.state {
            holding.name_snapshot(mark, now.monotonic);
        }
    }

    /// Gives the lease back: the fence shuts at once, then the release is written.
    pub fn release(&mut self, now: Reading) {
        self.with_holding(now, |holding, core| {
            holding.give_back(core, EndReason::Released, now.monotonic)
        });
    }

    /// Ends the tenure without a write; the lease lapses by itself. `work_failed`: because the work
    /// it was held for panicked or overran.
    pub fn drop_tenure(&mut self, work_failed: bool, now: Reading) {
        self.with_holding(now, |holding, core| {
            Some(holding.drop_tenure(core, work_failed, now.monotonic))
        });
    }

    /// Ends everything: a lease that is held is given back first (or, held back, left to expire).
    pub fn stop(&mut self, now: Reading) {
        self.enter(now);
        self.core.stopping = true;
        match &mut self.state {
            State::Holding(holding) => {
                let transition =
                    holding.give_back(&mut self.core, EndReason::Released, now.monotonic);
                self.apply(transition, now);
            }
            State::Standby(standby) => {
                standby.close_obituary(&mut self.core, EndReason::Lost);
                self.state = State::Stopped;
            }
            State::Refused | State::Stopped => {}
        }
    }

    // ---- outputs ----

    /// The next thing to do, until `None`. What is sent counts from `now`: read the clock before the
    /// call, and send after it.
    pub fn poll_action(&mut self, now: Reading, entropy: &mut dyn Entropy) -> Option<Action> {
        self.enter(now);
        loop {
            if let Some(action) = self.core.next_action(now.monotonic) {
                return Some(action);
            }
            let action = match &mut self.state {
                State::Holding(holding) => holding.action(&mut self.core, now, entropy),
                State::Standby(standby) => standby.action(&mut self.core, now, entropy),
                State::Refused | State::Stopped => None,
            };
            if action.is_some() || !self.core.has_actions() {
                return action;
            }
        }
    }

    /// The next thing that happened, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.next_event()
    }

    /// When to call [`Machine::handle_timeout`] if nothing else happens before. `None`: never.
    #[must_use]
    pub fn poll_timeout(&self, now: Reading) -> Option<MonotonicTime> {
        let next = match &self.state {
            State::Holding(holding) => Some(holding.timeout(&self.core)),
            State::Standby(standby) => Some(standby.timeout(&self.core, now.monotonic)),
            State::Refused | State::Stopped => None,
        };
        [next, self.core.marks_due()].into_iter().flatten().min()
    }

    // ---- getters ----

    /// What this instance is.
    #[must_use]
    pub fn role(&self) -> Role {
        match &self.state {
            State::Holding(holding) => match holding.stage {
                Stage::Active => Role::Active,
                Stage::Releasing(_) => Role::Releasing,
                Stage::Opening(_) | Stage::TakingOver { .. } => Role::TakingOver,
            },
            State::Refused => Role::Refused,
            State::Standby(_) => Role::Standby,
            State::Stopped => Role::Stopped,
        }
    }

    /// The epoch of the current tenure.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        match &self.state {
            State::Holding(holding) => Some(holding.epoch),
            _ => None,
        }
    }

    /// What the current tenure took over from.
    #[must_use]
    pub fn inherited(&self) -> Option<&Inherited> {
        match &self.state {
            State::Holding(holding) => Some(&holding.inherited),
            _ => None,
        }
    }

    /// Until when the current tenure is proved (half-open), whether or not its fence is open.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        match &self.state {
            State::Holding(holding) => Some(holding.deadline(&self.core)),
            _ => None,
        }
    }

    /// What the standby saw last.
    #[must_use]
    pub fn lease_seen(&self) -> Option<&LeaseSeen> {
        match &self.state {
            State::Standby(standby) => standby.lease_seen(),
            _ => None,
        }
    }

    /// How close behind the holder's renewals this standby reads, once it has found their phase.
    #[must_use]
    pub fn phase(&self) -> Option<Duration> {
        match &self.state {
            State::Standby(standby) => standby.phase(&self.core),
            _ => None,
        }
    }

    /// What is being waited for, if anything.
    #[must_use]
    pub fn waiting(&self, now: Reading) -> Option<Waiting> {
        match &self.state {
            State::Holding(holding) => holding.waiting(now.monotonic),
            State::Standby(standby) => standby.waiting(&self.core, now.monotonic),
            State::Refused | State::Stopped => None,
        }
    }

    // ---- inside ----

    /// What should have happened by `now` happens first; the deadline before anything else.
    fn enter(&mut self, now: Reading) {
        let transition = match &mut self.state {
            State::Holding(holding) => holding.enter(&mut self.core, now),
            State::Standby(standby) => {
                standby.enter(&mut self.core, now);
                None
            }
            State::Refused | State::Stopped => None,
        };
        self.apply(transition, now);
    }

    fn with_holding(
        &mut self,
        now: Reading,
        wish: impl FnOnce(&mut Holding, &mut Core<R>) -> Option<Transition>,
    ) {
        self.enter(now);
        if let State::Holding(holding) = &mut self.state {
            let transition = wish(holding, &mut self.core);
            self.apply(transition, now);
        }
    }

    fn apply(&mut self, transition: Option<Transition>, now: Reading) {
        match transition {
            None => {}
            Some(Transition::End { obituary: Some(epoch) }) if self.core.stopping => {
                self.core.emit(Event::Ended { epoch, reason: EndReason::Lost });
                self.state = State::Stopped;
            }
            Some(Transition::End { .. }) if self.core.stopping => self.state = State::Stopped,
            Some(Transition::End { obituary }) => {
                let timing = &self.core.config.timing;
                let standby = Standby::new(timing, now.monotonic, obituary);
                self.state = State::Standby(Box::new(standby));
            }
            Some(Transition::Refuse) => {
                if let State::Standby(standby) = &mut self.state {
                    standby.close_obituary(&mut self.core, EndReason::StoreRefused);
                }
                self.core.emit(Event::Refused);
                self.state = State::Refused;
            }
            Some(Transition::Take(taken)) => {
                self.core.retaking = None;
                self.core.known.learn_epoch(taken.write.epoch);
                let holding = Holding::new(&self.core, taken, now.monotonic);
                if holding.sign {
                    self.core.learn_authenticated();
                }
                self.core.emit(holding.taking_over());
                self.state = State::Holding(Box::new(holding));
                // The answer may have come at the very deadline of what it proves.
                self.enter(now);
            }
        }
    }
}
