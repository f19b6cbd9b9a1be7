//! How the parts of the machine of a session work together.

use super::{
    Action, Config, DenyReason, Event, LeaseEndReason, NotHeld, Reply, SessionMachine,
    SessionRules, WishError,
    core::Flight,
    event::Attempted,
    io::Object,
    lease::{Lease, State, Wish},
    table::Slot,
    watch::News,
};
use crate::{
    ObjectKey,
    key::InstanceId,
    machine::{self, Entropy, RequestId},
    store::StoreErrorKind,
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::time::Duration;

impl<R: SessionRules> SessionMachine<R> {
    /// What should have happened by `now` happens first; the session's deadline before anything else.
    pub(super) fn enter(&mut self, now: Reading) {
        self.core.own.machine.handle_timeout(now);
        self.drain_own(now);
        if self.core.flights.values().any(|flight| flight.until <= now.monotonic) {
            let flights = self.core.flights.iter();
            let late = flights.filter(|(_, flight)| flight.until <= now.monotonic);
            let late: Vec<_> = late.map(|(id, _)| *id).collect();
            for id in late {
                if let Some(flight) = self.core.flights.remove(&id) {
                    self.core.actions.push_back(Action::Forget(id));
                    let reply = Reply::Failed(StoreErrorKind::InDoubt);
                    self.answered(id, &flight, reply, now);
                }
            }
        }
        while let Some(key) = self.queues.fired(now.monotonic) {
            if let Some(lease) = self.leases.get_mut(&key) {
                lease.fire(&key, &mut self.core, now.monotonic);
            }
            self.settle(&key, now.monotonic);
        }
    }

    pub(super) fn next_action(
        &mut self,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        loop {
            if let Some(action) = self.own_action(now, entropy) {
                return Some(action);
            }
            if let Some(action) = self.core.actions.pop_front() {
                return Some(action);
            }
            if !self.core.may_send() {
                return None;
            }
            let slot = self.queues.due(now.monotonic)?;
            if let Some(action) = self.act(&slot, now, entropy) {
                return Some(action);
            }
        }
    }

    fn own_action(&mut self, now: Reading, entropy: &mut dyn Entropy) -> Option<Action> {
        let own = &mut self.core.own;
        let action = match own.machine.poll_action(now, entropy) {
            Some(machine::Action::Fence(order)) => {
                own.fence.map(|epoch| Action::Fence { epoch, order })
            }
            Some(machine::Action::Forget(id)) => Some(Action::Forget(id)),
            Some(machine::Action::Persist(id, note)) => Some(Action::Persist(id, note)),
            Some(machine::Action::Send(id, request)) => {
                let request = own.request(request, now.monotonic);
                let object = Object::Session(self.core.config.instance.clone());
                Some(Action::Send { id, object, request })
            }
            // No epoch floor is asked for.
            Some(machine::Action::FetchFloor(_)) | None => None,
        };
        self.drain_own(now);
        action
    }

    fn act(&mut self, slot: &Slot, now: Reading, entropy: &mut dyn Entropy) -> Option<Action> {
        match slot {
            Slot::Lease(key) => {
                let Self { core, leases, watches, .. } = self;
                let lease = leases.get_mut(key);
                let action = lease.and_then(|it| it.act(key, core, watches, now, entropy));
                self.settle(key, now.monotonic);
                self.end_if_given_up(now);
                action
            }
            Slot::Watch(instance) => {
                let watch = self.watches.get_mut(instance)?;
                if watch.skip_kill(&self.core, now.monotonic) {
                    self.settle_names(instance, now.monotonic);
                    return None;
                }
                let action = watch.act(instance, &mut self.core, now, entropy);
                if action.is_none() {
                    // It has been silent for W, and nobody here wants what is under it.
                    self.settle_names(instance, now.monotonic);
                }
                self.settle_watch(instance, now.monotonic);
                action
            }
        }
    }

    /// Takes in what happened to the session itself.
    pub(super) fn drain_own(&mut self, now: Reading) {
        while let Some(event) = self.core.own.machine.poll_event() {
            self.core.own.learn(&event, now);
            let told = (!matches!(event, machine::Event::LeaseSeen { .. }))
                .then(|| Event::Session(event.clone()));
            self.core.events.extend(told);
            match event {
                machine::Event::Active { .. } => self.settle_all(now.monotonic),
                machine::Event::Ended { reason, .. } => {
                    let keys: Vec<_> = self.leases.keys().cloned().collect();
                    for key in keys {
                        if let Some(lease) = self.leases.get_mut(&key) {
                            lease.session_ended(&key, &mut self.core, &reason, now.monotonic);
                        }
                        self.settle(&key, now.monotonic);
                    }
                }
                machine::Event::Refused => {
                    let reason = DenyReason::Store(StoreErrorKind::Unsupported);
                    self.end_all(&reason, now.monotonic);
                }
                _ => {}
            }
        }
    }

    pub(super) fn answered_own(&mut self, id: RequestId, reply: Reply, now: Reading) {
        let reply = match reply {
            Reply::Failed(error) => machine::Reply::Failed(error),
            Reply::Lease(_) => machine::Reply::Failed(StoreErrorKind::InDoubt),
            Reply::Session(sighting) => machine::Reply::Read(self.core.own.sighting(sighting)),
            Reply::Written(version) => machine::Reply::Written(version),
        };
        self.core.own.machine.handle_reply(id, reply, now);
        self.drain_own(now);
    }

    /// The answer to a request about a lease or another session.
    pub(super) fn answered(&mut self, id: RequestId, flight: &Flight, reply: Reply, now: Reading) {
        match &flight.slot {
            Slot::Lease(key) => {
                let interval = self.look_interval();
                let Self { core, leases, .. } = self;
                let lease = leases.get_mut(key).filter(|lease| lease.flight == Some(id));
                let Some(lease) = lease else { return };
                lease.flight = None;
                match flight.attempted {
                    Attempted::Acquisition => lease.taken(key, core, flight, reply, now),
                    Attempted::Audit => lease.audited(key, core, flight, reply, now.monotonic),
                    Attempted::HoldBackOver => {
                        lease.unmarked(key, core, flight, reply, now.monotonic);
                    }
                    Attempted::Release => lease.released(key, core, flight, reply, now.monotonic),
                    _ => lease.looked(key, core, flight, reply, interval, now),
                }
                self.settle(key, now.monotonic);
                self.end_if_given_up(now);
            }
            Slot::Watch(instance) => {
                let watch = self.watches.get_mut(instance);
                let Some(watch) = watch.filter(|watch| watch.request() == Some(id)) else { return };
                let news = watch.answered(instance, &mut self.core, flight, reply, now.monotonic);
                let was_tried = std::mem::take(&mut watch.is_tried);
                self.take_in(instance, news, was_tried, now.monotonic);
            }
        }
    }

    /// Something under this session cannot be given back: with the session it is.
    fn end_if_given_up(&mut self, now: Reading) {
        if std::mem::take(&mut self.core.gives_up) {
            self.core.own.machine.release(now);
            self.drain_own(now);
        }
    }

    /// What a watch found out is passed on to the leases under it.
    fn take_in(&mut self, instance: &InstanceId, news: News, was_tried: bool, now: MonotonicTime) {
        let names = match self.watches.get(instance) {
            Some(watch) if news == News::Ended || news == News::Freed || was_tried => watch.names(),
            _ => Vec::new(),
        };
        for key in names {
            let Some(lease) = self.leases.get_mut(&key) else { continue };
            match news {
                // Whoever did the waiting takes them at once.
                News::Ended => lease.has_waited = false,
                News::Failed(error) if lease.wish == Some(Wish::Try) => {
                    lease.wish = None;
                    self.core.deny(&key, DenyReason::Store(error));
                }
                _ => {}
            }
            self.settle(&key, now);
        }
        self.settle_watch(instance, now);
    }

    /// How long after one look at a lease the next one comes: R, or longer with many of them.
    fn look_interval(&self) -> Duration {
        let Config { looks_per_renew, .. } = *self.core.config;
        let rounds = self.queues.waiting().div_ceil(looks_per_renew.max(1)).max(1);
        self.core.renew().saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX))
    }

    // ---- wishes ----

    /// The row of a lease in the table, made if it has none.
    pub(super) fn row(
        &mut self,
        key: &ObjectKey,
        now: MonotonicTime,
    ) -> Result<&mut Lease, WishError> {
        let max = self.core.config.max_leases;
        if self.core.is_over {
            return Err(WishError::Stopped { lease: key.clone() });
        }
        if self.leases.len() >= max && !self.leases.contains_key(key) {
            return Err(WishError::Full { lease: key.clone(), max });
        }
        Ok(self.leases.entry(key.clone()).or_insert_with(|| Lease::new(now)))
    }

    pub(super) fn wish(
        &mut self,
        key: ObjectKey,
        wish: Wish,
        now: Reading,
    ) -> Result<(), WishError> {
        self.enter(now);
        let is_live = self.core.live().is_some();
        if let Some(lease) = self.leases.get(&key) {
            if let State::Held(held) = &lease.state {
                return Err(WishError::AlreadyHeld { lease: key, epoch: held.epoch });
            }
            if lease.wish.is_some() {
                return Err(WishError::AlreadyWanted { lease: key });
            }
        }
        if wish == Wish::Try && !is_live && !self.core.is_over {
            return Err(WishError::NotLive { lease: key });
        }
        let lease = self.row(&key, now.monotonic)?;
        lease.wish = Some(wish);
        if !R::TENURE_NEEDS_A_WRITE && matches!(lease.state, State::Releasing(_)) {
            lease.state = State::Idle;
            lease.flight = None;
        }
        if lease.keep_out.is_some() && wish == Wish::Try {
            lease.wish = None;
            self.core.deny(&key, DenyReason::KeptOut);
        } else if lease.flight.is_none() && lease.state == State::Idle {
            // What a watch showed of it may be old.
            lease.look_at = now.monotonic;
        }
        self.settle(&key, now.monotonic);
        Ok(())
    }

    pub(super) fn drop_wish(&mut self, key: &ObjectKey, now: MonotonicTime) {
        let Some(lease) = self.leases.get_mut(key) else { return };
        if lease.wish.take().is_none() {
            return;
        }
        if !R::GIVEN_UP_IS_FOLLOWED {
            lease.doubt = None;
        }
        self.settle(key, now);
    }

    pub(super) fn release_held(
        &mut self,
        key: &ObjectKey,
        now: MonotonicTime,
    ) -> Result<(), NotHeld> {
        let lease = self.leases.get_mut(key);
        let lease = lease.filter(|lease| matches!(lease.state, State::Held(_)));
        let Some(lease) = lease else { return Err(NotHeld { lease: key.clone() }) };
        lease.release(key, &mut self.core, now);
        self.settle(key, now);
        Ok(())
    }

    pub(super) fn lease_fence_shut(&mut self, key: &ObjectKey, epoch: Epoch, now: MonotonicTime) {
        let Some(lease) = self.leases.get_mut(key) else { return };
        if matches!(&lease.state, State::Held(held) if held.epoch == epoch && held.is_open) {
            lease.give_up_held(key, &mut self.core, LeaseEndReason::FenceShut, now);
            self.settle(key, now);
        }
    }

    /// Nothing is wanted any more.
    pub(super) fn end_all(&mut self, reason: &DenyReason, now: MonotonicTime) {
        if std::mem::replace(&mut self.core.is_over, true) {
            return;
        }
        let keys: Vec<_> = self.leases.keys().cloned().collect();
        for key in keys {
            let Some(lease) = self.leases.get_mut(&key) else { continue };
            if lease.wish.take().is_some() {
                self.core.deny(&key, reason.clone());
            }
            (lease.is_watched, lease.doubt, lease.keep_out) = (false, None, None);
            if let Some(id) = lease.flight.take() {
                self.core.forget(id);
            }
            if let State::Taking(_) = lease.state {
                lease.state = State::Idle;
            }
            self.settle(&key, now);
        }
    }
}
