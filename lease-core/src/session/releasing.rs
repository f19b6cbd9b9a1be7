//! Giving a lease back: a write that is repeated until it is certain.
//!
//! Nothing else would ever free it while the session lives.

use super::{
    core::{Core, Flight},
    event::{Attempted, LeaseEndReason},
    facts::{Life, NamedDraft},
    io::{Action, Draft, LeaseFenceOrder, Reply, Request, Sighting},
    lease::{Held, Lease, Releasing, State},
    rules::SessionRules,
};
use crate::{ObjectKey, machine::Entropy, store::StoreErrorKind, store::Version};
use fencing::{Epoch, MonotonicTime, Reading};

impl Lease {
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
        let Held { epoch, life, version, held_back_until, may_move, .. } = *held;
        core.fence(key, epoch, LeaseFenceOrder::Shut);
        let due = held_back_until.filter(|_| R::HELD_BACK_IS_NEVER_RELEASED);
        let due = due.map_or(now, |until| until.max(now));
        self.give_back_unheld(epoch, life, version, due);
        if let State::Releasing(releasing) = &mut self.state {
            (releasing.tells, releasing.may_move) = (true, may_move);
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
            may_move: false,
            is_to_be_read: false,
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
            Reply::Failed(StoreErrorKind::Precondition) if releasing.may_move => {
                (releasing.is_to_be_read, releasing.due) = (true, now);
                return;
            }
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

    /// The answer to the read that tells whether another write of the tenure took the condition of its
    /// release away.
    pub(super) fn verified<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) {
        let State::Releasing(releasing) = &mut self.state else { return };
        let reason = match reply {
            Reply::Lease(Sighting::Found { version, verdict, facts: Some(facts), .. })
                if core.is_own(verdict, &facts, releasing.life, releasing.epoch) =>
            {
                releasing.version = version;
                releasing.may_move = facts.held_back;
                (releasing.is_to_be_read, releasing.due) = (false, now);
                return;
            }
            Reply::Lease(_) if releasing.is_in_doubt => LeaseEndReason::Released,
            Reply::Lease(_) => LeaseEndReason::Replaced { by: None, verdict: None },
            reply => {
                let error = match reply {
                    Reply::Failed(error) => error,
                    _ => StoreErrorKind::InDoubt,
                };
                releasing.due = now + core.retry();
                return core.failed(flight.slot.object(), Attempted::Read, error);
            }
        };
        self.gave_back(key, core, reason, now);
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
}
