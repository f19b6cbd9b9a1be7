//! Resolving doubt: what became of a write whose answer never came (protocol, section 3).
//!
//! ```text
//!  answer to a write   others in doubt?   what follows
//!  Precondition        no                 somebody else wrote: lost at once
//!  Precondition        yes                read ─┬─ one of them      adopt it, with its own S
//!                                               └─ anything else    lost
//!  Contended           either             read ─┬─ one of them      adopt it, with its own S
//!                                               ├─ the last certain try again
//!                                               └─ anything else    lost
//! ```
//!
//! The read is unconditional: "not modified" would not tell what is there. It is repeated every
//! R/10 until it succeeds or the deadline comes; until something is certain, the deadline stays.

use super::{
    Transition,
    core::{Core, OwnWrite},
    event::{Attempted, EndReason},
    holding::{Flight, Holding, Stage},
    io::{Action, Request, RequestId, Sighting},
    rules::Rules,
};
use crate::store::StoreErrorKind;
use fencing::MonotonicTime;

/// A read that tells what became of the writes in doubt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Resolve {
    step: Step,
    /// The last certain version may still be there: then the write is tried again.
    may_be_unchanged: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Due(MonotonicTime),
    Sent { id: RequestId, sent: MonotonicTime },
}

impl Resolve {
    pub(super) fn request(&self) -> Option<RequestId> {
        match self.step {
            Step::Due(_) => None,
            Step::Sent { id, .. } => Some(id),
        }
    }

    pub(super) fn timeout<R: Rules>(&self, core: &Core<R>) -> MonotonicTime {
        match self.step {
            Step::Due(due) => due,
            Step::Sent { sent, .. } => sent + core.config.timing.renew(),
        }
    }
}

impl Holding {
    pub(super) fn resolve_from<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        due: MonotonicTime,
        may_be_unchanged: bool,
    ) {
        // A read that is on its way was sent before this answer came, and may be older than what
        // the answer speaks of: it is not used.
        if let Some(id) = self.resolve.take().and_then(|resolve| resolve.request()) {
            core.forget(id);
        }
        self.resolve = Some(Resolve { step: Step::Due(due), may_be_unchanged });
    }

    pub(super) fn resolve_enter<R: Rules>(&mut self, core: &mut Core<R>, now: MonotonicTime) {
        let budget = core.config.timing.renew();
        if let Some(Resolve { step, .. }) = &mut self.resolve
            && let Step::Sent { id, sent } = *step
            && sent + budget <= now
        {
            *step = Step::Due(now);
            core.forget(id);
            core.failed(Attempted::Read, StoreErrorKind::InDoubt);
        }
    }

    pub(super) fn resolve_action<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) -> Option<Action> {
        let resolve = self.resolve.as_mut()?;
        match resolve.step {
            Step::Due(due) if due <= now => {
                let id = core.next_id();
                resolve.step = Step::Sent { id, sent: now };
                Some(Action::Send(id, Request::Read { unless: None }))
            }
            _ => None,
        }
    }

    pub(super) fn read<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        result: Result<Sighting, StoreErrorKind>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let resolve = self.resolve.take_if(|resolve| resolve.request() == Some(id))?;
        let sighting = match result {
            Ok(Sighting::NotModified) => Err(StoreErrorKind::InDoubt),
            result => result,
        };
        match sighting {
            Err(StoreErrorKind::Unsupported) => Some(self.end(core, EndReason::StoreRefused, now)),
            Err(error) => {
                core.failed(Attempted::Read, error);
                let due = now + core.config.timing.retry();
                self.resolve = Some(Resolve { step: Step::Due(due), ..resolve });
                None
            }
            Ok(sighting) => self.resolved(core, sighting, resolve.may_be_unchanged, now),
        }
    }

    fn resolved<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        sighting: Sighting,
        may_be_unchanged: bool,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let Sighting::Found { version, verdict, facts, .. } = sighting else {
            return Some(self.end(core, EndReason::Deleted, now));
        };
        core.learn_sighting(verdict, facts.as_deref(), now);
        let shown = facts.as_ref().and_then(|facts| {
            let mut own_writes = self.own_writes();
            own_writes.find(|it| it.is_shown_by::<R>(&core.config, verdict, facts)).cloned()
        });
        if let Some(write) = shown {
            let proves = if R::ADOPTED_WITH_ITS_OWN_SENDING {
                write
            } else {
                self.own_writes().max_by_key(|write| write.sent.monotonic).cloned().unwrap_or(write)
            };
            self.landed(core, proves, version, now);
            return None;
        }
        if may_be_unchanged && version == self.version {
            self.renew_at = now + core.config.timing.retry();
            return None;
        }
        let believed = facts.filter(|_| core.known.accepts(&core.config, verdict));
        let reason = match believed {
            None => EndReason::Replaced { verdict },
            Some(facts) if facts.epoch <= self.epoch => EndReason::Lost,
            Some(facts) => EndReason::TakenOver { by: facts.holder.clone(), epoch: facts.epoch },
        };
        Some(self.end(core, reason, now))
    }

    /// The writes of this tenure that may have landed, or may land yet.
    fn own_writes(&self) -> impl Iterator<Item = &OwnWrite> {
        self.flights.iter().map(|Flight { write, .. }| write).chain(&self.doubts)
    }

    /// The last certain version is gone: a write was refused, and the read that tells whether that
    /// was over a write of one's own is still to come.
    pub(super) fn is_refused(&self) -> bool {
        self.resolve.as_ref().is_some_and(|resolve| !resolve.may_be_unchanged)
    }

    /// Whether the tenure is being given back.
    pub(super) fn is_releasing(&self) -> bool {
        matches!(self.stage, Stage::Releasing(_))
    }
}
