//! Giving the lease back: the fence shuts first, then one write with an empty holder.

use super::{
    Transition,
    core::Core,
    event::{Attempted, EndReason},
    holding::{Holding, Stage},
    io::{Action, Entropy, FenceOrder, Note, Request, RequestId},
    rules::Rules,
};
use crate::{
    record::Nonce,
    store::{StoreErrorKind, Version},
};
use fencing::{MonotonicTime, Reading};

/// A lease that is being given back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    /// What is told if it succeeds.
    reason: EndReason,
    step: Step,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// To be sent from then on. It is not noted yet, so that each try has a nonce of its own.
    Start(MonotonicTime),
    /// The history learns the nonce first, so that a restart knows its own release.
    Noting {
        id: RequestId,
        nonce: Nonce,
    },
    Noted(Nonce),
    Sent {
        id: RequestId,
        sent: MonotonicTime,
    },
}

impl Releasing {
    /// It is given back because the takeover was abandoned.
    pub(super) fn is_abandoning(&self) -> bool {
        matches!(self.reason, EndReason::Abandoned(_))
    }

    /// What is told if the tenure ends before the store's answer.
    pub(super) fn unanswered(&self) -> EndReason {
        match (&self.reason, &self.step) {
            (EndReason::Released, Step::Sent { .. }) => EndReason::ReleaseInDoubt,
            (EndReason::Released, _) => EndReason::Dropped,
            (reason, _) => reason.clone(),
        }
    }
}

impl Holding {
    /// Shuts the fence and starts to give the lease back. A lease that is still held back is left
    /// to expire: a release would hand the open question, whether its holder from before still
    /// acts, to the next.
    pub(super) fn give_back<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        reason: EndReason,
        now: MonotonicTime,
    ) -> Option<Transition> {
        if self.is_releasing() {
            return None;
        }
        if self.is_held_back(now) && R::HELD_BACK_IS_NEVER_RELEASED {
            let reason = match reason {
                EndReason::Released => EndReason::Dropped,
                other => other,
            };
            return Some(self.end(core, reason, now));
        }
        if R::SHUT_BEFORE_THE_RELEASE {
            core.fence(FenceOrder::Shut);
        }
        self.stage = Stage::Releasing(Releasing { reason, step: Step::Start(now) });
        None
    }

    /// A release that is not answered within R is in doubt, and left alone.
    pub(super) fn release_enter<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let Stage::Releasing(releasing) = &self.stage else { return None };
        match releasing.step {
            Step::Sent { sent, .. } if sent + core.config.timing.renew() <= now => {
                let reason = releasing.unanswered();
                core.failed(Attempted::Release, StoreErrorKind::InDoubt);
                Some(self.end(core, reason, now))
            }
            _ => None,
        }
    }

    pub(super) fn release_action<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        if self.resolve.is_some() {
            return None;
        }
        let is_renewing = self.is_renewing(now.monotonic);
        let Stage::Releasing(releasing) = &mut self.stage else { return None };
        if let Step::Start(due) = releasing.step
            && due <= now.monotonic
            && !is_renewing
        {
            let nonce = entropy.nonce().in_tenure(self.tag);
            core.known.wrote(self.epoch, nonce);
            core.known.released_with(nonce);
            let note = Note { release: Some(nonce), ..Note::default() };
            releasing.step = match core.persist(note) {
                Some(id) => Step::Noting { id, nonce },
                None => Step::Noted(nonce),
            };
        }
        let Step::Noted(nonce) = releasing.step else { return None };
        let id = core.next_id();
        releasing.step = Step::Sent { id, sent: now.monotonic };
        let draft = self.draft(false, now, nonce);
        Some(Action::Send(id, Request::Replace(draft, self.version.clone())))
    }

    /// A renewal within its budget may well be answered: a release beside it would be refused.
    fn is_renewing(&self, now: MonotonicTime) -> bool {
        !self.flights.is_empty() && now < self.renew_at
    }

    /// A release was sent and is not answered.
    pub(super) fn is_release_sent(&self) -> bool {
        matches!(&self.stage, Stage::Releasing(Releasing { step: Step::Sent { .. }, .. }))
    }

    /// A renewal of this tenure turned out to have landed: a release that was sent before is dead.
    pub(super) fn release_again<R: Rules>(&mut self, core: &mut Core<R>, now: MonotonicTime) {
        if let Stage::Releasing(releasing) = &mut self.stage
            && let Step::Sent { id, .. } = releasing.step
        {
            core.forget(id);
            releasing.step = Step::Start(now);
        }
    }

    /// Written down or not: the history only makes the next start faster.
    pub(super) fn release_persisted(&mut self, id: RequestId) {
        if let Stage::Releasing(releasing) = &mut self.stage
            && let Step::Noting { id: noting, nonce } = releasing.step
            && noting == id
        {
            releasing.step = Step::Noted(nonce);
        }
    }

    pub(super) fn release_written<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        result: Result<Version, StoreErrorKind>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let Stage::Releasing(releasing) = &mut self.stage else { return None };
        if !matches!(releasing.step, Step::Sent { id: sent, .. } if sent == id) {
            return None;
        }
        let reason = releasing.reason.clone();
        let soon = now + core.config.timing.retry();
        match result {
            Ok(_) => return Some(self.end(core, reason, now)),
            Err(StoreErrorKind::Precondition) => {
                // With a renewal in doubt: once that is resolved, the release is sent once more.
                releasing.step = Step::Start(now);
                return self.refused(core, now);
            }
            Err(StoreErrorKind::Contended) => {
                releasing.step = Step::Start(soon);
                self.resolve_from(core, now, true);
            }
            Err(StoreErrorKind::Unavailable) => {
                core.failed(Attempted::Release, StoreErrorKind::Unavailable);
                releasing.step = Step::Start(soon);
            }
            Err(StoreErrorKind::Unsupported) => {
                return Some(self.end(core, EndReason::StoreRefused, now));
            }
            Err(error @ (StoreErrorKind::InDoubt | StoreErrorKind::Corrupt)) => {
                core.failed(Attempted::Release, error);
                let reason = releasing.unanswered();
                return Some(self.end(core, reason, now));
            }
        }
        None
    }

    pub(super) fn release_timeout<R: Rules>(&self, core: &Core<R>) -> Option<MonotonicTime> {
        let Stage::Releasing(releasing) = &self.stage else { return None };
        match releasing.step {
            Step::Start(due) if self.flights.is_empty() => Some(due),
            Step::Start(due) => Some(due.max(self.renew_at)),
            Step::Sent { sent, .. } => Some(sent + core.config.timing.renew()),
            // Its answer is what moves it on.
            Step::Noting { .. } | Step::Noted(_) => None,
        }
        .filter(|_| self.resolve.is_none())
    }
}
