//! Holding a lease under the session, and giving it back.

use super::{
    core::{Core, Flight},
    event::{Attempted, Event, LeaseEndReason},
    facts::{Life, NamedDraft},
    io::{Action, Draft, LeaseFenceOrder, Reply, Request, Sighting},
    lease::{Held, Lease, State},
    rules::SessionRules,
};
use crate::{ObjectKey, machine::Entropy, store::StoreErrorKind, store::Version};
use fencing::{Epoch, MonotonicTime, Reading};

impl Lease {
    /// A tenure begins: a write of one's own that was sent at `proven` is in the store.
    #[allow(clippy::too_many_arguments, reason = "what a tenure consists of")]
    pub(super) fn begin<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        epoch: Epoch,
        life: Life,
        version: Version,
        proven: Reading,
        held_back_until: Option<MonotonicTime>,
    ) {
        self.wish = None;
        self.has_waited = false;
        self.sight = None;
        let mut held = Held {
            epoch,
            life,
            version,
            proven,
            held_back_until,
            is_open: false,
            audit_at: next_audit(core, proven),
            unmark_at: held_back_until,
            may_move: false,
        };
        match held_back_until {
            Some(until) => {
                let lease = key.clone();
                core.events.push_back(Event::HeldBack { lease, epoch, until });
            }
            None => held.open(key, core),
        }
        self.state = State::Held(Box::new(held));
    }

    /// When a timer of it fires: a hold-back, an audit that is overdue, the end of keeping out.
    pub(super) fn next_timer<R: SessionRules>(&self, core: &Core<R>) -> Option<MonotonicTime> {
        match &self.state {
            // What was held under it ends with it.
            State::Held(_) if core.live().is_none() => None,
            State::Held(held) => {
                let opens = held.held_back_until.filter(|_| !held.is_open);
                [opens, held.audit_deadline(core)].into_iter().flatten().min()
            }
            _ => self.keep_out,
        }
    }

    /// What is due by time alone.
    pub(super) fn fire<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) {
        self.keep_out = self.keep_out.filter(|keep_out| now < *keep_out);
        let State::Held(held) = &mut self.state else { return };
        if core.live().is_none() {
            return;
        }
        if held.audit_deadline(core).is_some_and(|deadline| deadline <= now) {
            self.give_up_held(key, core, LeaseEndReason::AuditOverdue, now);
        } else if held.held_back_until.is_some_and(|until| until <= now) {
            held.held_back_until = None;
            held.open(key, core);
        }
    }

    /// The answer to an audit.
    pub(super) fn audited<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) {
        let State::Held(held) = &mut self.state else {
            return self.verified(key, core, flight, reply, now);
        };
        let reason = match reply {
            Reply::Lease(Sighting::NotModified) => return held.prove(key, core, flight.sent),
            Reply::Lease(Sighting::Found { version, .. }) if version == held.version => {
                return held.prove(key, core, flight.sent);
            }
            Reply::Lease(Sighting::Found { version, verdict, facts: Some(facts), .. })
                if core.is_own(verdict, &facts, held.life, held.epoch) =>
            {
                // Written by this tenure: it is not held back any more.
                held.version = version;
                held.unmark_at = held.unmark_at.filter(|_| facts.held_back);
                held.may_move &= facts.held_back;
                return held.prove(key, core, flight.sent);
            }
            Reply::Lease(Sighting::Missing) => LeaseEndReason::Deleted,
            Reply::Lease(Sighting::Found { verdict, facts, .. }) => {
                let is_believed = core.own.machine.accepts(verdict);
                let facts = facts.filter(|_| is_believed);
                let by = facts.and_then(|facts| facts.lease.holder.clone());
                LeaseEndReason::Replaced { by, verdict: Some(verdict) }
            }
            other => {
                held.audit_at = now + core.retry();
                let error = match other {
                    Reply::Failed(error) => error,
                    _ => StoreErrorKind::InDoubt,
                };
                return core.failed(flight.slot.object(), Attempted::Audit, error);
            }
        };
        self.lost(key, core, reason, now);
    }

    /// Something else stands in the place of a lease that is held.
    fn lost<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        reason: LeaseEndReason,
        now: MonotonicTime,
    ) {
        let State::Held(held) = &self.state else { return };
        let epoch = held.epoch;
        core.fence(key, epoch, LeaseFenceOrder::Shut);
        core.ended(key, epoch, reason);
        self.state = State::Idle;
        self.look_again(now);
    }

    /// The tenure ends although the object says that it is held: that is given back as well.
    pub(super) fn give_up_held<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        reason: LeaseEndReason,
        now: MonotonicTime,
    ) {
        if let Some(id) = self.flight.take() {
            core.forget(id);
        }
        self.release(key, core, now);
        if let State::Releasing(releasing) = &mut self.state {
            releasing.tells = false;
            let epoch = releasing.epoch;
            core.ended(key, epoch, reason);
        }
    }

    /// The hold-back is over, and the object still says that there is one: whoever took the lease from
    /// there would be held back for nothing.
    pub(super) fn unmark<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        let State::Held(held) = &mut self.state else { return None };
        // Until it is answered: whatever ends the tenure meanwhile has to know of it.
        held.may_move = true;
        held.unmark_at = Some(now.monotonic + core.renew() * 2);
        let lease = Core::<R>::draft(true, held.epoch, 2, entropy.nonce(), now);
        let (session, life) = (core.config.instance.clone(), held.life);
        let draft = Draft::Lease(NamedDraft { lease, session, life, held_back: false });
        let request = Request::Replace(draft, held.version.clone());
        Some(self.send(key, core, Attempted::HoldBackOver, request, now))
    }

    pub(super) fn unmarked<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) {
        let State::Held(held) = &mut self.state else { return };
        let error = match reply {
            Reply::Written(version) => {
                (held.version, held.unmark_at, held.may_move) = (version, None, false);
                return held.prove(key, core, flight.sent);
            }
            Reply::Failed(error) => error,
            _ => StoreErrorKind::InDoubt,
        };
        if error != StoreErrorKind::Precondition {
            core.failed(flight.slot.object(), Attempted::HoldBackOver, error);
        }
        // A read tells what stands there now.
        held.audit_at = now + core.retry();
    }

    /// The session has ended, and with it whatever was held, taken or given back under it.
    pub(super) fn session_ended<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        reason: &crate::machine::EndReason,
        now: MonotonicTime,
    ) {
        self.doubt = None;
        let ended = match &self.state {
            State::Idle => return,
            State::Held(held) => Some(held.epoch),
            State::Releasing(releasing) => Some(releasing.epoch).filter(|_| releasing.tells),
            State::Taking(_) => None,
        };
        if let Some(id) = self.flight.take() {
            core.forget(id);
        }
        if let Some(epoch) = ended {
            core.ended(key, epoch, LeaseEndReason::Session(reason.clone()));
        }
        self.state = State::Idle;
        self.look_again(now);
    }
}

impl Held {
    fn open<R: SessionRules>(&mut self, key: &ObjectKey, core: &mut Core<R>) {
        self.is_open = true;
        let order = LeaseFenceOrder::Open { sent: self.proven, window: core.proof() };
        core.fence(key, self.epoch, order);
        core.events.push_back(Event::Acquired { lease: key.clone(), epoch: self.epoch });
    }

    /// A read that was sent at `sent` showed the lease as it was taken.
    fn prove<R: SessionRules>(&mut self, key: &ObjectKey, core: &mut Core<R>, sent: Reading) {
        self.proven = sent;
        self.audit_at = next_audit(core, sent);
        if self.is_open {
            let order = LeaseFenceOrder::Extend { sent, window: core.proof() };
            core.fence(key, self.epoch, order);
        }
    }

    /// With audit: when its fence shuts by itself.
    fn audit_deadline<R: SessionRules>(&self, core: &Core<R>) -> Option<MonotonicTime> {
        let is_audited = core.config.audit.is_some() && R::AUDIT_SHUTS_THE_FENCE;
        is_audited.then(|| self.proven.monotonic + core.proof())
    }
}

/// A little before A is over: what is sent has to wait for its turn.
fn next_audit<R: SessionRules>(core: &Core<R>, sent: Reading) -> MonotonicTime {
    let audit = core.config.audit.unwrap_or_default();
    sent.monotonic + audit.saturating_sub(core.retry())
}
