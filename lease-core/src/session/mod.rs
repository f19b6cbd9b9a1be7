//! Many named leases at the cost of one (protocol, section 9).
//!
//! A process renews one object, its *session*; each *named lease* under it is written only when it
//! changes hands, and is good for as long as the session is. [`SessionMachine`] decides what is
//! written when. Like the [machine of one lease](crate::machine) it is sans-IO: it reads no clock, sends
//! nothing, and knows no async runtime.
//!
//! ```text
//!  session   live ────renew────renew────renew────► ended: every lease under it ends with it
//!  lease a        acquire ═════════════ release
//!  lease b              acquire ═════════════════► ended
//! ```
//!
//! Four kinds of methods, as in [`Machine`](crate::machine::Machine):
//!
//! - *Inputs*, `handle_*`: something happened, and it is `now`. Each is preceded by the deadline
//!   check at the same `now`.
//! - *Outputs*, polled until they return `None`: [`SessionMachine::poll_action`],
//!   [`SessionMachine::poll_event`], and then [`SessionMachine::poll_timeout`], which says when to call
//!   [`SessionMachine::handle_timeout`] if nothing else happens before.
//! - *Mutators*, the application's wishes: [`SessionMachine::acquire`],
//!   [`SessionMachine::try_acquire`], [`SessionMachine::give_up`], [`SessionMachine::release`],
//!   [`SessionMachine::watch`], [`SessionMachine::unwatch`], [`SessionMachine::stop`].
//! - *Getters*, which change nothing.
//!
//! After any input or mutator: poll all actions, then all events, then the time-out. The contract about
//! time is that of [the machine of one lease](crate::machine).
//!
//! # What it costs
//!
//! | what | requests |
//! | --- | --- |
//! | the session, whatever it holds | one write per R |
//! | acquiring a lease that is free | one read, one write |
//! | releasing one | one write |
//! | waiting for leases of one holder | one conditional read of that holder's session per R, however many they are |
//! | beside that, each lease that is waited for or watched | one conditional read per R, at most [`Config::looks_per_renew`] of them per R in all: the holder may release the lease while its session lives, and nothing but the lease shows that |
//! | taking over what a dead holder held | one write to kill its session, one for each lease |
//! | each lease held, with [audit](Config::with_audit) | one conditional read per A |
//!
//! At most [`Config::max_in_flight`] requests are under way at once, beside those of the session
//! itself; what waits, waits in the machine's own table, which is bounded by [`Config::max_leases`].
//!
//! # Example
//!
//! ```
//! use lease_core::{
//!     ObjectKey,
//!     fencing::{Clock, testing::ManualClock},
//!     key::InstanceId, machine::{Entropy, Past}, record::Nonce, store::Version, timing::Timing,
//!     session::{Action, Config, Event, Object, Reply, Request, SessionMachine, Sighting},
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
//! let mut config = Config::new(InstanceId::new("a")?, timing);
//! config.fresh_instance = true;                   // the id was drawn just now
//! let mut session: SessionMachine = SessionMachine::new(config, Past::default(), clock.reading());
//! session.acquire(ObjectKey::new("orders/leases/shard-7")?, clock.reading())?;
//!
//! let mut entropy = Counting(0);
//! while let Some(action) = session.poll_action(clock.reading(), &mut entropy) {
//!     let Action::Send { id, object, request } = action else { continue };
//!     let reply = match (object, request) {       // a store that is empty
//!         (Object::Session(_), Request::Read { .. }) => Reply::Session(Sighting::Missing),
//!         (Object::Lease(_), Request::Read { .. }) => Reply::Lease(Sighting::Missing),
//!         (_, _) => Reply::Written(Version::new("v1")),
//!     };
//!     session.handle_reply(id, reply, clock.reading());
//! }
//! let acquired = std::iter::from_fn(|| session.poll_event())
//!     .any(|event| matches!(event, Event::Acquired { .. }));
//! assert!(acquired);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod core;
mod ended;
mod event;
mod facts;
mod inside;
mod io;
mod lease;
mod own;
pub mod record;
mod releasing;
mod rules;
mod settling;
pub mod shards;
mod table;
mod taking;
mod tenure;
mod watch;
mod wire;

pub use config::{AuditTooShort, Config, NotHeld, WishError};
pub use event::{Attempted, DenyReason, Event, LeaseEndReason, NamedSeen};
pub use facts::{Life, NamedDraft, NamedFacts, SessionDraft, SessionFacts, SessionState};
pub use io::{Action, Draft, LeaseFenceOrder, Object, Reply, Request, Sighting};
pub use rules::SessionRules;

use self::{
    core::Core,
    lease::{Lease, State, Watches, Wish},
    table::Queues,
};
use crate::{
    ObjectKey,
    machine::{Entropy, Past, Protocol, RequestId, Role},
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::collections::BTreeMap;

/// The session of one process, and the leases under it. See the [module](self) for how to drive it.
///
/// It is `Clone + Eq + Hash` and holds no key, so that a model checker can keep its states.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SessionMachine<R: SessionRules = Protocol> {
    core: Core<R>,
    leases: BTreeMap<ObjectKey, Lease>,
    watches: Watches,
    queues: Queues,
}

impl<R: SessionRules> SessionMachine<R> {
    /// A session that begins as soon as it can. `past`: what this instance's history knows of its own
    /// session.
    #[must_use]
    pub fn new(config: Config, past: Past, now: Reading) -> Self {
        Self {
            core: Core::new(config, past, now),
            leases: BTreeMap::new(),
            watches: BTreeMap::new(),
            queues: Queues::default(),
        }
    }

    // ---- inputs ----

    /// Time has passed. Call it at [`SessionMachine::poll_timeout`]; earlier or later does no harm.
    pub fn handle_timeout(&mut self, now: Reading) {
        self.enter(now);
    }

    /// The answer to [`Action::Send`]. One that nobody waits for any more changes nothing.
    pub fn handle_reply(&mut self, id: RequestId, reply: Reply, now: Reading) {
        self.enter(now);
        match self.core.flights.remove(&id) {
            Some(flight) => self.answered(id, &flight, reply, now),
            None => self.answered_own(id, reply, now),
        }
    }

    /// The answer to [`Action::Persist`]: it is on disk, or it is not.
    pub fn handle_persisted(&mut self, id: RequestId, ok: bool, now: Reading) {
        self.core.own.machine.handle_persisted(id, ok, now);
        self.enter(now);
    }

    /// The fence of the session's life `epoch` refused an order, since it is shut for good: the life
    /// is over, and every lease under it.
    pub fn handle_fence_shut(&mut self, epoch: Epoch, now: Reading) {
        self.core.own.machine.handle_fence_shut(epoch, now);
        self.enter(now);
    }

    /// The fence of the tenure `epoch` of a lease refused an order: the tenure is over, and the lease is
    /// given back if the session still lives.
    pub fn handle_lease_fence_shut(&mut self, lease: &ObjectKey, epoch: Epoch, now: Reading) {
        self.enter(now);
        self.lease_fence_shut(lease, epoch, now.monotonic);
    }

    // ---- mutators ----

    /// Asks for a lease, and waits for it as long as it takes: [`Event::Acquired`] tells. It waits also
    /// while the session is not live.
    ///
    /// # Errors
    ///
    /// [`WishError`] if this session holds it or waits for it already, has as many leases as it may, or
    /// has ended for good. (A name that is no key cannot be an [`ObjectKey`].)
    pub fn acquire(&mut self, lease: ObjectKey, now: Reading) -> Result<(), WishError> {
        self.wish(lease, Wish::Wait, now)
    }

    /// Asks for a lease if it is free now: [`Event::Acquired`] or [`Event::Denied`] tells. It is free if
    /// nobody holds it, or if the session of its holder is shown to have ended.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); and if the session is not live.
    pub fn try_acquire(&mut self, lease: ObjectKey, now: Reading) -> Result<(), WishError> {
        self.wish(lease, Wish::Try, now)
    }

    /// Does not wait for a lease any more. An acquisition that is under way is followed until it can
    /// land no more, or is given back. Nothing happens if it is not waited for; one that is held
    /// already stays held, since that has been told.
    pub fn give_up(&mut self, lease: &ObjectKey, now: Reading) {
        self.enter(now);
        self.drop_wish(lease, now.monotonic);
    }

    /// Gives a lease back: its fence shuts at once, then the release is written, and repeated until
    /// it is certain. One that is held back is given back once that is over.
    ///
    /// # Errors
    ///
    /// [`NotHeld`] if this session does not hold it (any more).
    pub fn release(&mut self, lease: &ObjectKey, now: Reading) -> Result<(), NotHeld> {
        self.enter(now);
        self.release_held(lease, now.monotonic)
    }

    /// Tells from now on what stands under a name ([`Event::Seen`]), without asking for it.
    ///
    /// # Errors
    ///
    /// [`WishError`] if the session has as many leases as it may, or has ended for good.
    pub fn watch(&mut self, lease: ObjectKey, now: Reading) -> Result<(), WishError> {
        self.enter(now);
        self.row(&lease, now.monotonic)?.is_watched = true;
        self.settle(&lease, now.monotonic);
        Ok(())
    }

    /// Stops telling what stands under a name.
    pub fn unwatch(&mut self, lease: &ObjectKey, now: Reading) {
        self.enter(now);
        if let Some(row) = self.leases.get_mut(lease) {
            (row.is_watched, row.told) = (false, None);
            self.settle(lease, now.monotonic);
        }
    }

    /// Ends everything: one write releases the session, and with it every lease under it.
    pub fn stop(&mut self, now: Reading) {
        self.enter(now);
        self.core.own.machine.stop(now);
        self.drain_own(now);
        self.end_all(&DenyReason::Stopped, now.monotonic);
    }

    // ---- outputs ----

    /// The next thing to do, until `None`. What is sent counts from `now`: read the clock before the
    /// call, and send after it.
    pub fn poll_action(&mut self, now: Reading, entropy: &mut dyn Entropy) -> Option<Action> {
        self.enter(now);
        self.next_action(now, entropy)
    }

    /// The next thing that happened, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    /// When to call [`SessionMachine::handle_timeout`] if nothing else happens before. `None`: never.
    #[must_use]
    pub fn poll_timeout(&self, now: Reading) -> Option<MonotonicTime> {
        let may_send = self.core.may_send();
        let flights = self.core.flights.values().map(|flight| flight.until).min();
        let queues = self.queues.next().filter(|_| may_send);
        let own = self.core.own.machine.poll_timeout(now);
        [own, flights, queues, self.queues.next_timer()].into_iter().flatten().min()
    }

    // ---- getters ----

    /// What this process is with regard to its own session.
    #[must_use]
    pub fn role(&self) -> Role {
        self.core.own.machine.role()
    }

    /// The life of the session, while its fence is open: leases can be taken and held.
    #[must_use]
    pub fn life(&self) -> Option<Life> {
        self.core.live()
    }

    /// Until when the session is proved (half-open), and so every lease under it.
    #[must_use]
    pub fn deadline(&self) -> Option<MonotonicTime> {
        self.core.own.machine.deadline()
    }

    /// The epoch under which this session holds a lease, held back or not.
    #[must_use]
    pub fn held(&self, lease: &ObjectKey) -> Option<Epoch> {
        match &self.leases.get(lease)?.state {
            State::Held(held) => Some(held.epoch),
            _ => None,
        }
    }

    /// Every lease that this session holds, held back or not.
    pub fn all_held(&self) -> impl Iterator<Item = (&ObjectKey, Epoch)> {
        self.leases.iter().filter_map(|(key, lease)| match &lease.state {
            State::Held(held) => Some((key, held.epoch)),
            _ => None,
        })
    }

    /// How many leases are wanted, held, watched or on their way back.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// How many sessions of others are watched.
    #[must_use]
    pub fn sessions_watched(&self) -> usize {
        self.watches.len()
    }

    /// How many requests are under way, beside those of the session itself.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.flights.len()
    }
}
