//! Looking at a lease, and taking it: what is due, and one write.

use super::{
    core::{Core, Flight},
    event::{Attempted, DenyReason},
    facts::NamedDraft,
    io::{Action, Draft, Reply, Request},
    lease::{Doubt, Lease, Opening, State, Taking, Watches, Wish},
    rules::SessionRules,
    table::{Queued, Slot, Urgency},
};
use crate::{
    ObjectKey,
    machine::Entropy,
    store::{StoreErrorKind, Version},
};
use fencing::{MonotonicTime, Reading};
use std::time::Duration;

impl Lease {
    /// When it has something to send next.
    pub(super) fn due<R: SessionRules>(&self, core: &Core<R>) -> Option<Queued> {
        let is_live = core.live().is_some();
        if self.flight.is_some() || core.is_over {
            return None;
        }
        match &self.state {
            State::Held(held) => {
                core.config.audit.filter(|_| is_live)?;
                let unmark_at = held.unmark_at.filter(|_| held.is_open);
                let at = unmark_at.map_or(held.audit_at, |at| at.min(held.audit_at));
                Some((Urgency::Urgent, at))
            }
            State::Idle if self.is_followed() => {
                let at = self.sight.as_ref().map_or(self.look_at, |sight| sight.shown);
                Some((Urgency::Urgent, at)).filter(|_| is_live)
            }
            State::Idle if self.wish.is_some() || self.is_watched => {
                let take_at = self.take_due().filter(|_| is_live);
                match take_at.filter(|take_at| *take_at <= self.look_at) {
                    Some(take_at) => Some((Urgency::Taking, take_at)),
                    None => Some((Urgency::Usual, self.look_at)),
                }
            }
            State::Releasing(releasing) => {
                Some((Urgency::Urgent, releasing.due)).filter(|_| is_live)
            }
            State::Idle | State::Taking(_) => None,
        }
    }

    /// When it is to be taken, if it is wanted and free.
    fn take_due(&self) -> Option<MonotonicTime> {
        let take_at = self.take_at.filter(|_| self.wish.is_some())?;
        Some(self.keep_out.map_or(take_at, |keep_out| keep_out.max(take_at)))
    }

    /// Does what is due.
    pub(super) fn act<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        watches: &Watches,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        let is_due = self.due(core).is_some_and(|(_, due)| due <= now.monotonic);
        if !is_due {
            return None;
        }
        match &self.state {
            State::Held(held) => {
                let unmark_at = held.unmark_at.filter(|_| held.is_open);
                if unmark_at.is_some_and(|at| at <= now.monotonic) {
                    return self.unmark(key, core, now, entropy);
                }
                let unless = Some(held.version.clone());
                Some(self.send(key, core, Attempted::Audit, Request::Read { unless }, now))
            }
            State::Idle => {
                let is_free = self.take_due().is_some_and(|due| due <= now.monotonic);
                let is_to_be_burned = self.is_followed() && self.sight.is_some();
                if core.live().is_some() && (is_free || is_to_be_burned) {
                    let opening = self.opening(core, watches, now.monotonic);
                    return self.take(key, core, opening, now, entropy);
                }
                let unless = self.sight.as_ref().and_then(|sight| sight.version.clone());
                Some(self.send(key, core, Attempted::Read, Request::Read { unless }, now))
            }
            State::Releasing(releasing) if releasing.is_to_be_read => {
                let request = Request::Read { unless: None };
                Some(self.send(key, core, Attempted::Audit, request, now))
            }
            State::Releasing(_) => Some(self.send_release(key, core, now, entropy)),
            State::Taking(_) => None,
        }
    }

    pub(super) fn send<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        attempted: Attempted,
        request: Request,
        now: Reading,
    ) -> Action {
        let (id, action) = core.send(Slot::Lease(key.clone()), attempted, request, now);
        self.flight = Some(id);
        action
    }

    /// One write over what was seen. Something that was given up while in doubt is not taken, but its
    /// condition is taken away from it: by a release, or, where that would hand an open question on,
    /// by an acquisition that is released once it is not held back any more.
    fn take<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        opening: Option<Opening>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        let (life, sight) = (core.live()?, self.sight.take()?);
        self.take_at = None;
        let hold_back = match (opening, &self.doubt) {
            (_, Some(doubt)) if self.wish.is_none() => {
                core.hold_back(now.monotonic).filter(|_| doubt.is_held_back)
            }
            (Some(Opening::Free { hold_back }), _) => hold_back,
            _ => None,
        };
        let is_burning = self.is_followed() && hold_back.is_none();
        // Numbers are told apart by the moment: what is held back opens later.
        let later = if hold_back.is_some() { Duration::from_secs(2) } else { Duration::ZERO };
        let is_told = sight.facts.is_some() && core.own.machine.accepts(sight.verdict);
        let forgotten = core.forgotten.filter(|_| !is_told);
        let highest = self.highest.max(self.tried).max(forgotten);
        let Ok(epoch) = core.next_epoch(highest, now.wall + later) else {
            self.give_in(key, core, DenyReason::EpochsExhausted);
            return None;
        };
        self.tried = Some(epoch);
        let lease = Core::<R>::draft(!is_burning, epoch, 1, entropy.nonce(), now);
        let session = core.config.instance.clone();
        let held_back = hold_back.is_some();
        let draft = Draft::Lease(NamedDraft { lease, session, life, held_back });
        let condition = sight.version;
        let request = match condition.clone() {
            None => Request::Create(draft),
            Some(version) => Request::Replace(draft, version),
        };
        let taking = Taking { life, epoch, sent: now, condition, hold_back, is_burning };
        self.state = State::Taking(Box::new(taking));
        Some(self.send(key, core, Attempted::Acquisition, request, now))
    }

    /// It can never be taken. One that is followed cannot be either, so that its session has to end.
    fn give_in<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        reason: DenyReason,
    ) {
        if self.wish.take().is_some() {
            core.deny(key, reason);
        }
        core.gives_up |= self.doubt.take().is_some();
    }

    /// The answer to a look.
    pub(super) fn looked<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        interval: Duration,
        now: Reading,
    ) {
        let error = match reply {
            Reply::Lease(sighting) => {
                if self.see(core, sighting, now.monotonic) {
                    // What cannot be believed is waited out, which a gap of 2R would start anew.
                    let is_waited_out = self.believed(core).is_none();
                    let interval = if is_waited_out { core.renew() } else { interval };
                    self.look_at = flight.sent.monotonic + interval;
                    return self.meet_own_record(key, core, now);
                }
                StoreErrorKind::InDoubt
            }
            Reply::Failed(error) => error,
            _ => StoreErrorKind::InDoubt,
        };
        core.failed(flight.slot.object(), Attempted::Read, error);
        // A tenth of the usual, also where that is longer than R: with many leases a store that refuses
        // at once is not asked at its own speed.
        self.look_at = now.monotonic + core.retry().max(interval / 10);
        if self.wish == Some(Wish::Try) {
            self.wish = None;
            core.deny(key, DenyReason::Store(error));
        }
    }

    /// One's own live record, found by reading. It begins no tenure: a release of it may be under way.
    /// If it is wanted it is taken like any other, by a write; otherwise it is given back.
    fn meet_own_record<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        now: Reading,
    ) {
        let Some(facts) = self.own_record(core).cloned() else { return };
        let Some(version) = self.sight.as_ref().and_then(|sight| sight.version.clone()) else {
            return;
        };
        let hold_back = core.hold_back(now.monotonic).filter(|_| facts.held_back);
        let (epoch, life) = (facts.lease.epoch, facts.life);
        let until = hold_back.map(|hold_back| now.monotonic + hold_back);
        if self.wish.is_none() {
            return self.give_back_unheld(epoch, life, version, until.unwrap_or(now.monotonic));
        }
        if R::GIVEN_UP_IS_FOLLOWED {
            // Given up before it is taken anew, it would stand there for as long as the session lives.
            let is_held_back = facts.held_back;
            self.doubt = Some(Box::new(Doubt { condition: Some(version.clone()), is_held_back }));
        }
        if !R::TENURE_NEEDS_A_WRITE {
            self.begin(key, core, epoch, life, version, now, until);
        }
    }

    /// The answer to an acquisition.
    pub(super) fn taken<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: Reading,
    ) {
        let State::Taking(taking) = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        let soon = now.monotonic + core.retry();
        let error = match reply {
            Reply::Written(version) => return self.took(key, core, *taking, version, now),
            Reply::Failed(error) => error,
            _ => StoreErrorKind::InDoubt,
        };
        if error != StoreErrorKind::Precondition {
            core.failed(flight.slot.object(), Attempted::Acquisition, error);
        }
        self.look_again(soon);
        match error {
            StoreErrorKind::Precondition => {
                self.has_waited = true;
                self.look_at = now.monotonic;
            }
            StoreErrorKind::Unsupported => {
                self.give_in(key, core, DenyReason::Store(error));
            }
            StoreErrorKind::InDoubt | StoreErrorKind::Corrupt => {
                let is_dropped = self.wish.is_none() && !R::GIVEN_UP_IS_FOLLOWED;
                if core.live() == Some(taking.life) && !is_dropped {
                    let is_held_back = taking.hold_back.is_some();
                    let doubt = Doubt { condition: taking.condition, is_held_back };
                    self.doubt = Some(Box::new(doubt));
                }
                if flight.until <= now.monotonic {
                    self.look_at = now.monotonic;
                }
            }
            StoreErrorKind::Contended | StoreErrorKind::Unavailable => {}
        }
    }

    fn took<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        taking: Taking,
        version: Version,
        now: Reading,
    ) {
        core.own.machine.learn_authenticated();
        self.highest = self.highest.max(Some(taking.epoch));
        self.doubt = None;
        self.look_again(now.monotonic);
        if core.live() != Some(taking.life) || taking.is_burning {
            // It names a life that is over, and so is free; or it was no acquisition.
            return;
        }
        let until = taking.hold_back.map(|hold_back| now.monotonic + hold_back);
        let Taking { epoch, life, sent, .. } = taking;
        if self.wish.is_some() {
            self.begin(key, core, epoch, life, version, sent, until);
        } else if R::GIVEN_UP_IS_FOLLOWED {
            self.give_back_unheld(epoch, life, version, until.unwrap_or(now.monotonic));
        }
    }
}
