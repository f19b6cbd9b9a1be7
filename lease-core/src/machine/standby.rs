//! The standby: reads, waits, and takes the lease when it may.

use super::{
    Transition,
    acquire::{Acquisition, Attempt, Recheck},
    core::Core,
    event::{Attempted, EndReason, Event, LeaseSeen, Predecessor, WaitReason, Waiting},
    io::{Action, Entropy, Request, RequestId, Sighting},
    phase::Phase,
    rules::Rules,
    seen::{Lineage, Seen, Shown},
};
use crate::{
    store::{StoreErrorKind, Version},
    timing::Timing,
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Standby {
    pub(super) poll: Poll,
    phase: Phase,
    /// When the last read that was answered was sent.
    last_read: Option<MonotonicTime>,
    pub(super) seen: Option<Seen>,
    /// The last summary that was told, so that each is told once.
    told: Option<LeaseSeen>,
    pub(super) attempt: Option<Attempt>,
    /// Acquisitions that may have landed, or may land yet.
    pub(super) doubts: Vec<Acquisition>,
    pub(super) recheck: Recheck,
    floor: Floor,
    /// A tenure that ended because somebody else wrote: the next read tells who.
    obituary: Option<Epoch>,
    /// No acquisition before then: the number space is exhausted, or one was refused for no reason.
    pub(super) pause: Option<Waiting>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Poll {
    Due(MonotonicTime),
    Sent { id: RequestId, sent: MonotonicTime, unless: Option<Version> },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Floor {
    /// To be asked from then on.
    Ask(Option<MonotonicTime>),
    Asked(RequestId),
    Told,
}

/// What the standby would do next.
enum Plan {
    Nothing,
    Take { hold_back: Option<Duration>, predecessor: Predecessor },
    Wait(Waiting),
}

impl Standby {
    /// A standby that reads at once. `obituary`: the tenure whose end that read explains.
    pub(super) fn new(timing: &Timing, now: MonotonicTime, obituary: Option<Epoch>) -> Self {
        Self {
            poll: Poll::Due(now),
            phase: Phase::new(timing),
            last_read: None,
            seen: None,
            told: None,
            attempt: None,
            doubts: Vec::new(),
            recheck: Recheck::No,
            floor: Floor::Ask(None),
            obituary,
            pause: None,
        }
    }

    /// Requests past their budget count as failed from here on.
    pub(super) fn enter<R: Rules>(&mut self, core: &mut Core<R>, now: Reading) {
        let timing = &core.config.timing;
        let (budget, read_budget) = (timing.renew(), timing.read_budget());
        if let Poll::Sent { id, sent, .. } = self.poll
            && sent + read_budget <= now.monotonic
        {
            core.forget(id);
            self.read_failed(core, StoreErrorKind::InDoubt, now.monotonic);
        }
        let is_late =
            |it: &mut Attempt| it.acquisition.write.sent.monotonic + budget <= now.monotonic;
        if let Some(late) = self.attempt.take_if(is_late) {
            core.forget(late.id);
            self.in_doubt(core, late.acquisition);
            self.poll = Poll::Due(now.monotonic);
        }
    }

    pub(super) fn action<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        if let Some(action) = self.ask_floor(core, now.monotonic) {
            return Some(action);
        }
        if let Plan::Take { hold_back, predecessor } = self.plan(core, now.monotonic)
            && let Some(action) = self.take(core, now, entropy, hold_back, predecessor)
        {
            return Some(action);
        }
        match self.poll {
            Poll::Due(due) if due <= now.monotonic && self.attempt.is_none() => {
                let id = core.next_id();
                let unless = self.seen.as_ref().and_then(Seen::version).cloned();
                self.poll = Poll::Sent { id, sent: now.monotonic, unless: unless.clone() };
                Some(Action::Send(id, Request::Read { unless }))
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
        let Poll::Sent { id: expected, sent, unless } = &self.poll else { return None };
        if *expected != id {
            return None;
        }
        let sent = *sent;
        let shown = match result {
            Ok(sighting) => Shown::of(sighting).or_else(|| {
                let seen = self.seen.as_ref().filter(|seen| seen.version() == unless.as_ref());
                seen.filter(|seen| seen.version().is_some()).map(Seen::again)
            }),
            Err(StoreErrorKind::Unsupported) => return Some(Transition::Refuse),
            Err(error) => {
                self.read_failed(core, error, now);
                return None;
            }
        };
        let Some(shown) = shown else {
            self.read_failed(core, StoreErrorKind::InDoubt, now);
            return None;
        };
        let before = self.seen.as_ref().and_then(Seen::version).cloned();
        let transition = self.shown(core, shown, sent, now);
        self.last_read = Some(sent);
        let due = self.next_read(core, sent, now, before.as_ref());
        self.poll = Poll::Due(due);
        transition
    }

    /// When to read next: right behind the holder's next renewal where its phase is known, every R
    /// otherwise.
    fn next_read<R: Rules>(
        &mut self,
        core: &Core<R>,
        sent: MonotonicTime,
        held: MonotonicTime,
        before: Option<&Version>,
    ) -> MonotonicTime {
        let timing = &core.config.timing;
        match self.seen.as_ref().filter(|seen| seen.is_renewed(core)) {
            Some(seen) if core.config.phase_lock => {
                let is_new = seen.version() != before;
                self.phase.next_read(timing, sent, held, is_new, seen.age())
            }
            _ => {
                self.phase.lose();
                sent + if core.config.phase_lock { Phase::scan(timing) } else { timing.renew() }
            }
        }
    }

    /// Whether an acquisition is under way that will be held back.
    pub(super) fn is_taking_held_back(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.acquisition.hold_back.is_some())
    }

    /// How close behind the holder's renewals the reads come, once that is known.
    pub(super) fn phase<R: Rules>(&self, core: &Core<R>) -> Option<Duration> {
        self.phase.lag(&core.config.timing)
    }

    pub(super) fn floor<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        told: Result<Option<Epoch>, StoreErrorKind>,
        now: MonotonicTime,
    ) {
        if self.floor != Floor::Asked(id) {
            return;
        }
        self.floor = match told {
            Ok(floor) => {
                core.learn_floor(floor);
                Floor::Told
            }
            Err(error) => {
                core.failed(Attempted::EpochFloor, error);
                Floor::Ask(Some(now + core.config.timing.renew()))
            }
        };
    }

    /// When the next thing is due.
    pub(super) fn timeout<R: Rules>(&self, core: &Core<R>, now: MonotonicTime) -> MonotonicTime {
        let timing = &core.config.timing;
        let (budget, read_budget) = (timing.renew(), timing.read_budget());
        let poll = match (&self.attempt, &self.poll) {
            (Some(attempt), _) => attempt.acquisition.write.sent.monotonic + budget,
            (None, Poll::Due(due)) => *due,
            (None, Poll::Sent { sent, .. }) => *sent + read_budget,
        };
        let planned = match self.plan(core, now) {
            Plan::Wait(Waiting { until: Some(until), .. }) if until > now => Some(until),
            // Asked late: what became due is still to be done.
            Plan::Take { .. } => Some(now),
            Plan::Nothing | Plan::Wait(_) => None,
        };
        planned.map_or(poll, |planned| poll.min(planned))
    }

    pub(super) fn waiting<R: Rules>(&self, core: &Core<R>, now: MonotonicTime) -> Option<Waiting> {
        match self.plan(core, now) {
            Plan::Wait(waiting) => Some(waiting),
            Plan::Nothing | Plan::Take { .. } => None,
        }
    }

    pub(super) fn lease_seen(&self) -> Option<&LeaseSeen> {
        self.told.as_ref()
    }

    /// The end of a tenure that no read could explain in time.
    pub(super) fn close_obituary<R: Rules>(&mut self, core: &mut Core<R>, reason: EndReason) {
        if let Some(epoch) = self.obituary.take() {
            core.emit(Event::Ended { epoch, reason });
        }
    }

    /// What may be done now, and what is waited for if nothing may. A decision over facts: it reads
    /// no clock, sends nothing, changes nothing.
    fn plan<R: Rules>(&self, core: &Core<R>, now: MonotonicTime) -> Plan {
        let wait = |reason, until| Plan::Wait(Waiting { reason, until });
        if !core.wanted || core.stopping {
            return Plan::Nothing;
        }
        let Some(seen) = self.seen.as_ref().filter(|_| self.is_settled()) else {
            return wait(WaitReason::Store, None);
        };
        let opening = seen.opening(core, now);
        if let Some(keep_out) = core.kept_out(now) {
            let reason = match keep_out.after_abandon {
                true => WaitReason::KeepOutAfterAbandon,
                false => WaitReason::KeepOutAfterRelease,
            };
            return wait(reason, Some(keep_out.until.max(opening.due)));
        }
        if opening.due > now {
            return wait(opening.waiting_for, Some(opening.due));
        }
        if let Some(pause) = self.pause.filter(|pause| Some(now) < pause.until) {
            return Plan::Wait(pause);
        }
        if R::BLIND_GAP_RESTARTS && !seen.is_fresh(core, now) {
            return wait(WaitReason::Store, None);
        }
        if core.config.has_floor && self.floor != Floor::Told {
            let until = match self.floor {
                Floor::Ask(until) => until,
                Floor::Asked(_) | Floor::Told => None,
            };
            return wait(WaitReason::EpochFloor, until);
        }
        Plan::Take { hold_back: opening.hold_back, predecessor: opening.predecessor }
    }

    /// No acquisition is on its way, and a read came after the last.
    fn is_settled(&self) -> bool {
        self.attempt.is_none() && self.recheck == Recheck::No
    }

    fn ask_floor<R: Rules>(&mut self, core: &mut Core<R>, now: MonotonicTime) -> Option<Action> {
        let Floor::Ask(due) = self.floor else { return None };
        let is_needed = core.config.has_floor && core.wanted && self.seen.is_some();
        if !is_needed || due.is_some_and(|due| now < due) {
            return None;
        }
        let id = core.next_id();
        self.floor = Floor::Asked(id);
        Some(Action::FetchFloor(id))
    }

    fn shown<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        shown: Shown,
        sent: MonotonicTime,
        now: MonotonicTime,
    ) -> Option<Transition> {
        self.learn(core, &shown, now);
        let version_before = self.seen.as_ref().map(|seen| seen.version().cloned());
        let lineage_before = self.seen.as_ref().map(|seen| seen.lineage(core));
        let restart = std::mem::take(&mut self.recheck) == Recheck::Restart;
        let lag = self.lag(core, &shown, now);
        let mut seen = Seen::update(self.seen.take(), core, shown, restart, lag, now);
        if !R::SEEN_FROM_THE_ANSWER && seen.started_at() == now {
            seen = seen.since(sent);
        }
        let came_back = version_before.is_some_and(|version| version.as_ref() == seen.version())
            && seen.started_at() == now;
        if came_back || lineage_before.is_some_and(|before| before != seen.lineage(core)) {
            // Others may have held the lease meanwhile, and written snapshots.
            self.floor = Floor::Ask(None);
        }
        if restart && came_back {
            // It came back, or the store is at odds with itself: no loop at the store's own speed.
            let until = Some(now + core.config.timing.retry());
            self.pause = Some(Waiting { reason: WaitReason::Store, until });
        }
        let summary = seen.summary(core);
        self.tell_end(core, &summary);
        if self.told.as_ref() != Some(&summary) {
            core.emit(Event::LeaseSeen { lease: summary.clone() });
            self.told = Some(summary);
        }
        let landed = self.landed(core, &seen, now);
        self.seen = Some(seen);
        landed
    }

    /// How long ago what a read shows first may have been written.
    fn lag<R: Rules>(&self, core: &Core<R>, shown: &Shown, now: MonotonicTime) -> Duration {
        let since_last = self.last_read.map_or(Duration::ZERO, |sent| now - sent);
        let Shown::Lease { verdict, facts: Some(facts), .. } = shown else { return since_last };
        let before = self.seen.as_ref().map(|seen| seen.lineage(core));
        let is_renewal = facts.holder.is_some()
            && before == Some(Lineage::Epoch(facts.epoch))
            && core.known.accepts(&core.config, *verdict);
        let phase = self.phase.lag(&core.config.timing).filter(|_| is_renewal);
        phase.unwrap_or(since_last)
    }

    /// Notes what the record says, if it can be believed, and reports what looks wrong.
    fn learn<R: Rules>(&mut self, core: &mut Core<R>, shown: &Shown, now: MonotonicTime) {
        let Shown::Lease { version, verdict, facts, .. } = shown else { return };
        let is_new = self.seen.as_ref().and_then(Seen::version) != Some(version);
        let is_first = self.seen.is_none();
        core.learn_sighting(*verdict, facts.as_deref(), now);
        let Some(facts) = facts.as_ref().filter(|_| core.known.accepts(&core.config, *verdict))
        else {
            return;
        };
        let is_left_behind = is_first && core.known.is_from_own_past(facts);
        if is_new
            && facts.holder.as_ref() == Some(&core.config.instance)
            && !core.known.may_be_own_write(facts)
            && !is_left_behind
        {
            core.emit(Event::IdentityShared { epoch: facts.epoch });
        }
        let own = core.config.timing.ttl();
        let is_told = self
            .seen
            .as_ref()
            .and_then(Seen::facts)
            .is_some_and(|before| (before.epoch, before.ttl) == (facts.epoch, facts.ttl));
        if !is_told && facts.ttl != own {
            core.emit(Event::TtlDiffers { own, seen: facts.ttl });
        }
    }

    fn read_failed<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        error: StoreErrorKind,
        now: MonotonicTime,
    ) {
        core.failed(Attempted::Read, error);
        self.close_obituary(core, EndReason::Lost);
        self.poll = Poll::Due(now + core.config.timing.retry());
    }

    fn tell_end<R: Rules>(&mut self, core: &mut Core<R>, summary: &LeaseSeen) {
        let Some(ended) = self.obituary else { return };
        let reason = match summary {
            LeaseSeen::Held { epoch, .. } | LeaseSeen::Released { epoch } if *epoch <= ended => {
                EndReason::Lost
            }
            LeaseSeen::Held { holder, epoch } => {
                EndReason::TakenOver { by: Some(holder.clone()), epoch: *epoch }
            }
            LeaseSeen::Missing => EndReason::Deleted,
            LeaseSeen::Released { epoch } => EndReason::TakenOver { by: None, epoch: *epoch },
            LeaseSeen::Untrusted { verdict } => EndReason::Replaced { verdict: *verdict },
        };
        self.close_obituary(core, reason);
    }
}
