//! Opening the fence: only once the takeover is confirmed, no hold-back is left, and the history has
//! the epoch. Or giving the takeover up.

use super::{
    Transition,
    core::Core,
    event::{AbandonReason, Attempted, EndReason, Event},
    holding::{Holding, Stage},
    io::{FenceOrder, Note, RequestId},
    rules::Rules,
};
use crate::store::StoreErrorKind;
use fencing::MonotonicTime;

impl Holding {
    pub(super) fn confirm(&mut self) {
        if let Stage::TakingOver { confirmed } = &mut self.stage {
            *confirmed = true;
            // From here on this instance vouches for the lease.
            self.sign = true;
        }
    }

    /// Gives the takeover up before it was confirmed, and keeps out of the next one for T.
    pub(super) fn abandon<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        reason: AbandonReason,
        now: MonotonicTime,
    ) -> Option<Transition> {
        if !matches!(self.stage, Stage::TakingOver { .. } | Stage::Opening(_)) {
            return None;
        }
        self.give_back(core, EndReason::Abandoned(reason), now)
    }

    /// A note about this tenure is in the history, or could not be written.
    pub(super) fn persisted<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        ok: bool,
        now: MonotonicTime,
    ) -> Option<Transition> {
        if self.stage == Stage::Opening(id) {
            if ok {
                self.open(core);
                return None;
            }
            core.failed(Attempted::History, StoreErrorKind::Unavailable);
            return self.abandon(core, AbandonReason::History, now);
        }
        self.release_persisted(id);
        None
    }

    pub(super) fn is_held_back(&self, now: MonotonicTime) -> bool {
        self.held_back_until.is_some_and(|until| now < until)
    }

    pub(super) fn open_once_recorded<R: Rules>(&mut self, core: &mut Core<R>, now: MonotonicTime) {
        // Marks that are not on disk yet go along: the fence opens after all of it.
        let note = Note { opened: Some(self.tenure()), ..core.unwritten_marks() };
        match core.persist(note) {
            Some(id) if R::HISTORY_BEFORE_OPENING => {
                self.stage = Stage::Opening(id);
                // The application has kept its budget. A disk that hangs must not keep the lease.
                self.budget_until = now + core.config.timing.ttl();
            }
            _ => self.open(core),
        }
    }

    fn open<R: Rules>(&mut self, core: &mut Core<R>) {
        self.stage = Stage::Active;
        self.held_back_until = None;
        core.fence(FenceOrder::Open { sent: self.proven, window: core.window() });
        core.emit(Event::Active { epoch: self.epoch });
    }
}
