//! Holding the lease: renewing it, and ending in time.
//!
//! Renewals in flight are all conditional on the same version, the last certain one. So as soon as
//! one of them is known to have landed, the others can land no more, and their answers count for
//! nothing.

use super::{
    Transition,
    core::{Core, KeepOut, LastSnapshot, OwnWrite},
    doubt::Resolve,
    event::{AbandonReason, Attempted, EndReason, Event, Predecessor, WaitReason, Waiting},
    floor::FloorCheck,
    inherited::Inherited,
    io::{Action, Draft, Entropy, FenceOrder, Request, RequestId},
    release::Releasing,
    rules::Rules,
};
use crate::{
    record::{Nonce, SnapshotMark, TenureMark, TenureTag},
    store::{StoreErrorKind, Version},
};
use fencing::{Epoch, MonotonicTime, Reading};

/// A lease that was just taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Taken {
    pub(super) write: OwnWrite,
    pub(super) version: Version,
    pub(super) held_back_until: Option<MonotonicTime>,
    pub(super) predecessor: Predecessor,
    pub(super) last_snapshot: LastSnapshot,
    pub(super) inherited: Inherited,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Holding {
    pub(super) epoch: Epoch,
    /// What all nonces of the tenure begin with.
    pub(super) tag: TenureTag,
    /// The last version that is certainly one's own.
    pub(super) version: Version,
    pub(super) seq: u64,
    /// When the last write that is known to have landed was sent: the tenure is proved from here.
    pub(super) proven: Reading,
    /// Renewals that were sent and not answered, in that order.
    pub(super) flights: Vec<Flight>,
    /// Renewals whose outcome is not known and will not be told.
    pub(super) doubts: Vec<OwnWrite>,
    /// When the next renewal is to be sent; behind one that was, the end of its budget.
    pub(super) renew_at: MonotonicTime,
    pub(super) resolve: Option<Resolve>,
    pub(super) stage: Stage,
    pub(super) held_back_until: Option<MonotonicTime>,
    /// When the takeover is abandoned: unless it is confirmed, and then unless it is recorded.
    pub(super) budget_until: MonotonicTime,
    pub(super) sign: bool,
    pub(super) floor: FloorCheck,
    pub(super) predecessor: Predecessor,
    pub(super) last_snapshot: LastSnapshot,
    /// From which write on the lease names it.
    named_from_seq: u64,
    pub(super) inherited: Inherited,
}

/// A renewal that was sent and not answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flight {
    pub(super) id: RequestId,
    pub(super) write: OwnWrite,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// The fence is open.
    Active,
    /// Confirmed and no longer held back; the history is being written.
    Opening(RequestId),
    /// The fence is shut for good; the lease is being given back.
    Releasing(Releasing),
    /// The fence is not open yet.
    TakingOver { confirmed: bool },
}

impl Holding {
    pub(super) fn new<R: Rules>(core: &Core<R>, taken: Taken, now: MonotonicTime) -> Self {
        let Taken { write, version, held_back_until, predecessor, last_snapshot, inherited } =
            taken;
        Self {
            epoch: write.epoch,
            tag: write.nonce.tenure(),
            version,
            seq: write.seq,
            proven: write.sent,
            flights: Vec::new(),
            doubts: Vec::new(),
            renew_at: now.max(write.sent.monotonic + core.config.timing.renew()),
            resolve: None,
            stage: Stage::TakingOver { confirmed: false },
            held_back_until,
            budget_until: now + core.config.takeover_budget,
            sign: predecessor.is_trusted(),
            floor: FloorCheck::new(core, now),
            predecessor,
            last_snapshot,
            named_from_seq: 0,
            inherited,
        }
    }

    pub(super) const fn tenure(&self) -> TenureMark {
        TenureMark { epoch: self.epoch, tag: self.tag }
    }

    pub(super) fn taking_over(&self) -> Event {
        Event::TakingOver {
            epoch: self.epoch,
            predecessor: self.predecessor.clone(),
            held_back_until: self.held_back_until,
        }
    }

    /// The lease names this snapshot from now on, and is written at once. Once it is active, never an
    /// older one; before, whatever was restored.
    pub(super) fn name_snapshot(&mut self, mark: SnapshotMark, now: MonotonicTime) {
        let is_news = match &self.stage {
            Stage::TakingOver { .. } => Some(&mark) != self.last_snapshot.as_ref(),
            _ => Some(&mark) > self.last_snapshot.as_ref(),
        };
        if is_news {
            self.last_snapshot = Some(mark);
            self.named_from_seq = self.seq.saturating_add(1);
            if self.flights.is_empty() {
                self.renew_at = self.renew_at.min(now);
            }
        }
    }

    /// Until when the tenure is proved (half-open).
    pub(super) fn deadline<R: Rules>(&self, core: &Core<R>) -> MonotonicTime {
        self.proven.monotonic + core.window()
    }

    /// The deadline check, at the same `now` as the input that follows it.
    pub(super) fn enter<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
    ) -> Option<Transition> {
        let deadline = self.deadline(core);
        let is_past = match R::DEADLINE_IS_HALF_OPEN {
            true => now.monotonic >= deadline,
            false => now.monotonic > deadline,
        };
        let is_past_on_wall =
            R::WALL_CLOCK_IS_LOOKED_AT && now.wall >= self.proven.wall + core.window();
        if is_past || is_past_on_wall {
            let did_not_run = now.monotonic - deadline > core.config.timing.renew() || !is_past;
            let reason = match &self.stage {
                Stage::Releasing(releasing) => releasing.unanswered(),
                _ if did_not_run => EndReason::Suspended,
                _ => EndReason::Expired,
            };
            return Some(self.end(core, reason, now.monotonic));
        }
        self.resolve_enter(core, now.monotonic);
        if let Some(ended) = self.release_enter(core, now.monotonic) {
            return Some(ended);
        }
        let overran = match &self.stage {
            Stage::TakingOver { .. } if self.floor.is_overdue(now.monotonic) => {
                return self.abandon(core, AbandonReason::EpochFloor, now.monotonic);
            }
            Stage::TakingOver { confirmed: false } => AbandonReason::BudgetSpent,
            Stage::Opening(_) => AbandonReason::History,
            Stage::Active | Stage::Releasing(_) | Stage::TakingOver { .. } => return None,
        };
        match self.budget_until <= now.monotonic {
            true => self.abandon(core, overran, now.monotonic),
            false => None,
        }
    }

    pub(super) fn action<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        if self.stage == (Stage::TakingOver { confirmed: true })
            && !self.is_held_back(now.monotonic)
            && self.floor.is_proved()
        {
            self.open_once_recorded(core, now.monotonic);
            return None;
        }
        if let Some(action) = self.floor_action(core, now.monotonic) {
            return Some(action);
        }
        if let Some(action) = self.resolve_action(core, now.monotonic) {
            return Some(action);
        }
        if let Stage::Releasing(_) = self.stage {
            return self.release_action(core, now, entropy);
        }
        if self.resolve.is_none() && self.renew_at <= now.monotonic {
            return Some(self.renew(core, now, entropy));
        }
        None
    }

    /// The fence was found shut although it should be open.
    pub(super) fn fence_shut<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        epoch: Epoch,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let should_be_open = self.stage == Stage::Active && self.epoch == epoch;
        should_be_open.then(|| self.end(core, EndReason::Suspended, now))
    }

    pub(super) fn written<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        result: Result<Version, StoreErrorKind>,
        now: Reading,
    ) -> Option<Transition> {
        let Some(at) = self.flights.iter().position(|flight| flight.id == id) else {
            return self.release_written(core, id, result, now.monotonic);
        };
        let write = self.flights.remove(at).write;
        // The next try is due soon, unless a later one is on its way: that one has its own budget.
        let is_last = at == self.flights.len();
        let again_at = match is_last {
            true => now.monotonic + core.config.timing.retry(),
            false => self.renew_at,
        };
        match result {
            // It may be one's own release that stands in its way: that one's answer tells.
            Err(StoreErrorKind::Precondition | StoreErrorKind::Contended)
                if self.is_release_sent() => {}
            Ok(version) => {
                let proves = match R::VALID_FROM_SENDING {
                    true => write,
                    false => OwnWrite { sent: now, ..write },
                };
                self.landed(core, proves, version, now.monotonic);
            }
            Err(StoreErrorKind::Precondition) => return self.refused(core, now.monotonic),
            Err(StoreErrorKind::Contended) if self.is_refused() => {
                return self.refused(core, now.monotonic);
            }
            Err(StoreErrorKind::Contended) if !R::CONFLICT_IS_LOOKED_INTO => {
                return Some(self.lost(core, now.monotonic));
            }
            Err(StoreErrorKind::Contended) => self.resolve_from(core, now.monotonic, true),
            Err(StoreErrorKind::Unsupported) => {
                return Some(self.end(core, EndReason::StoreRefused, now.monotonic));
            }
            Err(error @ StoreErrorKind::Unavailable) => {
                core.failed(Attempted::Renewal, error);
                self.renew_at = again_at;
                if self.is_refused() && !self.is_in_doubt() {
                    return Some(self.lost(core, now.monotonic));
                }
            }
            Err(error @ (StoreErrorKind::InDoubt | StoreErrorKind::Corrupt)) => {
                core.failed(Attempted::Renewal, error);
                self.doubts.push(write);
                self.renew_at = again_at;
            }
        }
        None
    }

    pub(super) fn timeout<R: Rules>(&self, core: &Core<R>) -> MonotonicTime {
        let mut next = self.deadline(core);
        match &self.stage {
            Stage::Releasing(_) => {}
            _ if self.resolve.is_some() => {}
            _ => next = next.min(self.renew_at),
        }
        match (&self.stage, self.held_back_until) {
            (Stage::TakingOver { confirmed: true }, Some(until)) if !self.floor.is_asked() => {
                next = next.min(until);
            }
            (Stage::TakingOver { confirmed: false } | Stage::Opening(_), _) => {
                next = next.min(self.budget_until);
            }
            _ => {}
        }
        let resolve = self.resolve.as_ref().map(|resolve| resolve.timeout(core));
        [resolve, self.release_timeout(core), self.floor_timeout()]
            .into_iter()
            .flatten()
            .fold(next, Ord::min)
    }

    pub(super) fn waiting(&self, now: MonotonicTime) -> Option<Waiting> {
        let (reason, until) = match &self.stage {
            Stage::Active => return None,
            _ if self.is_held_back(now) => (WaitReason::HeldBack, self.held_back_until),
            Stage::TakingOver { confirmed: false } => {
                (WaitReason::Confirmation, Some(self.budget_until))
            }
            Stage::TakingOver { .. } if !self.floor.is_proved() => (WaitReason::EpochFloor, None),
            Stage::Opening(_) | Stage::Releasing(_) | Stage::TakingOver { .. } => {
                (WaitReason::Store, None)
            }
        };
        Some(Waiting { reason, until })
    }

    /// One's own write is certain: it proves the tenure from when it was sent, and every other
    /// write in flight is dead.
    pub(super) fn landed<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        write: OwnWrite,
        version: Version,
        now: MonotonicTime,
    ) {
        self.forget_requests(core);
        self.doubts.clear();
        self.version = version;
        self.renew_at = match write.seq < self.named_from_seq {
            true => now,
            false => now.max(write.sent.monotonic + core.config.timing.renew()),
        };
        if write.signed {
            core.learn_authenticated();
        }
        if write.sent.monotonic > self.proven.monotonic {
            self.proven = write.sent;
            if self.stage == Stage::Active {
                let (sent, window) = (self.proven, core.window());
                core.fence(FenceOrder::Extend { sent, window });
            }
        }
        core.emit(Event::Renewed { epoch: self.epoch, deadline: self.deadline(core) });
        self.release_again(core, now);
    }

    /// The condition of a write of one's own did not hold.
    pub(super) fn refused<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        if !self.is_in_doubt() || !R::DOUBT_IS_RESOLVED {
            return Some(self.lost(core, now));
        }
        self.resolve_from(core, now, false);
        None
    }

    /// Some write of one's own may have landed, or may land yet.
    fn is_in_doubt(&self) -> bool {
        !self.flights.is_empty() || !self.doubts.is_empty()
    }

    /// The tenure ends; why is known.
    pub(super) fn end<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        reason: EndReason,
        now: MonotonicTime,
    ) -> Transition {
        self.keep_out(core, &reason, now);
        self.forget_requests(core);
        core.fence(FenceOrder::Shut);
        core.emit(Event::Ended { epoch: self.epoch, reason });
        Transition::End { obituary: None }
    }

    /// Somebody else wrote the lease. The fence shuts at once; a read fills in who it was.
    pub(super) fn lost<R: Rules>(&mut self, core: &mut Core<R>, now: MonotonicTime) -> Transition {
        self.keep_out(core, &EndReason::Lost, now);
        self.forget_requests(core);
        core.fence(FenceOrder::Shut);
        Transition::End { obituary: Some(self.epoch) }
    }

    /// Ends the tenure without a write of its own.
    pub(super) fn drop_tenure<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        work_failed: bool,
        now: MonotonicTime,
    ) -> Transition {
        let reason = match &self.stage {
            _ if work_failed => EndReason::WorkFailed,
            Stage::Releasing(releasing) => releasing.unanswered(),
            _ => EndReason::Dropped,
        };
        self.end(core, reason, now)
    }

    /// However a release fares, whoever abandoned or released gives others the first turn.
    fn keep_out<R: Rules>(&self, core: &mut Core<R>, reason: &EndReason, now: MonotonicTime) {
        let timing = &core.config.timing;
        let (released, abandoning) = match &self.stage {
            Stage::Releasing(releasing) => (true, releasing.is_abandoning()),
            _ => (false, false),
        };
        core.keep_out = if core.retaking.is_some() {
            None
        } else if abandoning || matches!(reason, EndReason::Abandoned(_)) {
            Some(KeepOut { until: now + timing.ttl(), after_abandon: true })
        } else if released && core.config.keep_out_after_release {
            Some(KeepOut { until: now + timing.renew() * 2, after_abandon: false })
        } else {
            None
        };
    }

    fn renew<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Action {
        let draft = self.draft(true, now, entropy.nonce().in_tenure(self.tag));
        core.known.wrote(draft.epoch, draft.nonce);
        let id = core.next_id();
        self.flights.push(Flight { id, write: OwnWrite::of(&draft, now) });
        let left = self.deadline(core) - now.monotonic;
        let timing = &core.config.timing;
        // Right before the deadline next to nothing is left; no two tries are closer than R/10.
        self.renew_at = now.monotonic + timing.budget(left).max(timing.retry());
        Action::Send(id, Request::Replace(draft, self.version.clone()))
    }

    pub(super) fn draft(&mut self, held: bool, now: Reading, nonce: Nonce) -> Draft {
        self.seq = self.seq.saturating_add(1);
        Draft {
            held,
            epoch: self.epoch,
            seq: self.seq,
            nonce,
            renewed_at: now.wall,
            sign: self.sign,
            last_snapshot: self.last_snapshot.clone(),
        }
    }

    fn forget_requests<R: Rules>(&mut self, core: &mut Core<R>) {
        for flight in self.flights.drain(..) {
            core.forget(flight.id);
        }
        if let Some(id) = self.resolve.take().and_then(|resolve| resolve.request()) {
            core.forget(id);
        }
    }
}
