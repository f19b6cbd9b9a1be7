//! Holding a lease under the session, and giving it back.

use super::{
    core::{Core, Flight},
    event::{Attempted, Event, LeaseEndReason},
    facts::{Life, NamedDraft},
    io::{Action, Draft, LeaseFenceOrder, Reply, Request, Sighting},
    lease::{Held, Lease, Releasing, State},
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
        let State::Held(held) = &mut self.state else { return };
        let reason = match reply {
            Reply::Lease(Sighting::NotModified) => return held.prove(key, core, flight.sent),
            Reply::Lease(Sighting::Found { version, .. }) if version == held.version => {
                return held.prove(key, core, flight.sent);
            }
            Reply::Lease(Sighting::Missing) => LeaseEndReason::Deleted,
            Reply::Lease(Sighting::Found { verdict, facts, .. }) => {
                let is_believed = core.own.machine.accepts(verdict);
                let facts = facts.filter(|_| is_believed);
                let by = facts.and_then(|facts| facts.lease.holder.clone());
                LeaseEndReason::Replaced { by, verdict: Some(verdict) }
            }
            Reply::Failed(error) => {
                held.audit_at = now + core.retry();
                return core.failed(flight.slot.object(), Attempted::Audit, error);
            }
            _ => {
                held.audit_at = now + core.retry();
                return;
            }
        };
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

    /// The fence shuts, and the lease is given back; one that is held back not before that is over.
    pub(super) fn release<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) {
        let State::Held(held) = std::mem::replace(&mut self.state, State::Idle) else { return };
        if let Some(id) = self.flight.take() {
            core.forget(id);
        }
        let Held { epoch, life, version, held_back_until, .. } = *held;
        core.fence(key, epoch, LeaseFenceOrder::Shut);
        let due = held_back_until.filter(|_| R::HELD_BACK_IS_NEVER_RELEASED);
        let due = due.map_or(now, |until| until.max(now));
        self.give_back_unheld(epoch, life, version, due);
        if let State::Releasing(releasing) = &mut self.state {
            releasing.tells = true;
        }
    }

    /// Gives back what stands in the store as this session's, without a tenure that would end.
    pub(super) fn give_back_unheld(
        &mut self,
        epoch: Epoch,
        life: Life,
        version: Version,
        due: MonotonicTime,
    ) {
        self.sight = None;
        self.take_at = None;
        self.state = State::Releasing(Box::new(Releasing {
            epoch,
            life,
            version,
            due,
            tries: 0,
            is_in_doubt: false,
            tells: false,
        }));
    }

    pub(super) fn send_release<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Action {
        let nonce = entropy.nonce();
        let State::Releasing(releasing) = &mut self.state else {
            // Only one that is being given back is asked to.
            return self.send(key, core, Attempted::Read, Request::Read { unless: None }, now);
        };
        releasing.tries = releasing.tries.saturating_add(1);
        let seq = u64::from(releasing.tries) + 1;
        let lease = Core::<R>::draft(false, releasing.epoch, seq, nonce, now);
        let session = core.config.instance.clone();
        let life = releasing.life;
        let draft = Draft::Lease(NamedDraft { lease, session, life, held_back: false });
        let request = Request::Replace(draft, releasing.version.clone());
        self.send(key, core, Attempted::Release, request, now)
    }

    /// The answer to a release. It is repeated, on the same condition, until its fate is certain:
    /// while the session lives nothing else would ever free the lease.
    pub(super) fn released<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) {
        let State::Releasing(releasing) = &mut self.state else { return };
        let error = match reply {
            Reply::Written(_) => return self.gave_back(key, core, LeaseEndReason::Released, now),
            // The condition is gone: by an earlier try, or by what ended the tenure before it.
            Reply::Failed(StoreErrorKind::Precondition) => {
                let reason = match releasing.is_in_doubt {
                    true => LeaseEndReason::Released,
                    false => LeaseEndReason::Replaced { by: None, verdict: None },
                };
                return self.gave_back(key, core, reason, now);
            }
            Reply::Failed(error) => error,
            _ => StoreErrorKind::InDoubt,
        };
        core.failed(flight.slot.object(), Attempted::Release, error);
        let is_late = flight.until <= now;
        releasing.due = if is_late { now } else { now + core.retry() };
        match error {
            StoreErrorKind::InDoubt | StoreErrorKind::Corrupt => {
                releasing.is_in_doubt = true;
                if !R::RELEASE_IS_REPEATED {
                    self.gave_back(key, core, LeaseEndReason::Released, now);
                }
            }
            // It cannot be given back: with the session it is.
            StoreErrorKind::Unsupported => core.gives_up = true,
            _ => {}
        }
    }

    fn gave_back<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        reason: LeaseEndReason,
        now: MonotonicTime,
    ) {
        let State::Releasing(releasing) = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        if releasing.tells {
            core.ended(key, releasing.epoch, reason);
        }
        self.look_again(now);
        if core.config.keep_out_after_release && R::KEEPS_OUT_AFTER_RELEASE {
            self.keep_out = Some(now + core.renew() * 2);
        }
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
