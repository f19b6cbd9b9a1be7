//! What all parts of the machine share: choices, the session itself, what waits to be polled.

use super::{
    config::Config,
    event::{Attempted, DenyReason, Event, LeaseEndReason},
    facts::{Life, NamedFacts},
    io::{Action, LeaseFenceOrder, Object, Request},
    own::Own,
    rules::SessionRules,
    table::Slot,
};
use crate::{
    ObjectKey,
    auth::Verdict,
    machine::{Draft, EpochOrigin, Past, RequestId},
    record::Nonce,
    store::StoreErrorKind,
};
use fencing::{
    Epoch, MonotonicTime, Reading, WallTime, source::clock_floor, token::EpochsExhausted,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Core<R: SessionRules> {
    pub(super) config: Arc<Config>,
    pub(super) own: Own<R>,
    pub(super) actions: VecDeque<Action>,
    pub(super) events: VecDeque<Event>,
    /// Requests about leases and other sessions that are not answered.
    pub(super) flights: BTreeMap<RequestId, Flight>,
    /// The highest epoch of the leases that are not in the table any more.
    pub(super) forgotten: Option<Epoch>,
    /// Nothing is wanted any more, or nothing can be had.
    pub(super) is_over: bool,
    /// A lease cannot be given back: the session has to end.
    pub(super) gives_up: bool,
    jitter: u64,
}

/// A request that is not answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flight {
    pub(super) slot: Slot,
    pub(super) attempted: Attempted,
    pub(super) sent: Reading,
    /// When it counts as failed.
    pub(super) until: MonotonicTime,
}

impl<R: SessionRules> Core<R> {
    pub(super) fn new(config: Config, past: Past, now: Reading) -> Self {
        Self {
            own: Own::new(&config, past, now),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            flights: BTreeMap::new(),
            forgotten: None,
            is_over: false,
            gives_up: false,
            jitter: config.jitter_seed.unwrap_or(0),
            config: Arc::new(config),
        }
    }

    pub(super) fn renew(&self) -> Duration {
        self.config.timing.renew()
    }

    /// R/10.
    pub(super) fn retry(&self) -> Duration {
        self.config.timing.retry()
    }

    /// The life under which leases may be taken and held.
    pub(super) fn live(&self) -> Option<Life> {
        self.own.live()
    }

    pub(super) fn may_send(&self) -> bool {
        self.flights.len() < self.config.max_in_flight.max(1)
    }

    /// A request about `slot`, under way from `now`.
    pub(super) fn send(
        &mut self,
        slot: Slot,
        attempted: Attempted,
        request: Request,
        now: Reading,
    ) -> (RequestId, Action) {
        let timing = &self.config.timing;
        let budget = match request {
            Request::Read { .. } => timing.read_budget(),
            Request::Create(_) | Request::Replace(..) => timing.renew(),
        };
        let id = self.own.machine.next_id();
        let object = slot.object();
        let until = now.monotonic + budget;
        self.flights.insert(id, Flight { slot, attempted, sent: now, until });
        (id, Action::Send { id, object, request })
    }

    /// Nobody waits for this answer any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        if self.flights.remove(&id).is_some() {
            self.actions.push_back(Action::Forget(id));
        }
    }

    pub(super) fn failed(&mut self, object: Object, attempted: Attempted, error: StoreErrorKind) {
        self.events.push_back(Event::StoreFailed { object, attempted, error });
    }

    pub(super) fn deny(&mut self, lease: &ObjectKey, reason: DenyReason) {
        self.events.push_back(Event::Denied { lease: lease.clone(), reason });
    }

    pub(super) fn fence(&mut self, lease: &ObjectKey, epoch: Epoch, order: LeaseFenceOrder) {
        self.actions.push_back(Action::LeaseFence { lease: lease.clone(), epoch, order });
    }

    pub(super) fn ended(&mut self, lease: &ObjectKey, epoch: Epoch, reason: LeaseEndReason) {
        self.events.push_back(Event::Ended { lease: lease.clone(), epoch, reason });
    }

    /// With audit: for how long whoever takes a lease keeps its fence shut, if somebody may still act
    /// under it. The holder's own read may be A old and its answer R. W is the margin for clocks that run
    /// at different rates; it is at least a fifth, as the margin of a lease is of T, also where A is long.
    pub(super) fn hold_back(&self, now: MonotonicTime) -> Option<Duration> {
        let audit = self.config.audit.filter(|_| R::AUDIT_HOLDS_BACK)?;
        let open = audit + self.renew();
        Some(open + self.own.machine.wait(None, now).max(open / 5))
    }

    /// For how long a lease's own read or write proves it: A + R with audit.
    pub(super) fn proof(&self) -> Duration {
        let audit = self.config.audit.filter(|_| R::AUDIT_SHUTS_THE_FENCE);
        audit.map_or(Duration::MAX, |audit| audit + self.renew())
    }

    /// The epoch of an acquisition that opens at `wall`, above `highest`.
    ///
    /// With [`EpochOrigin::Clock`] it is also at least the moment in units of half a microsecond, not
    /// only the second: a missing lease may be created, deleted and created by another process within
    /// one second, and no hold-back tells the two apart.
    pub(super) fn next_epoch(
        &self,
        highest: Option<Epoch>,
        wall: WallTime,
    ) -> Result<Epoch, EpochsExhausted> {
        let highest = highest.filter(|_| R::EPOCH_IS_ABOVE_WHAT_WAS_SEEN);
        let above = highest.map_or(Ok(Epoch::MIN), Epoch::next)?;
        match self.config.epochs {
            EpochOrigin::Clock if R::CLOCK_IS_A_FLOOR => Ok(above.max(moment(wall))),
            EpochOrigin::Clock | EpochOrigin::Counter => Ok(above),
        }
    }

    /// Whether this is a record of one's own tenure, as it stands while that lasts.
    pub(super) fn is_own(
        &self,
        verdict: Verdict,
        facts: &NamedFacts,
        life: Life,
        epoch: Epoch,
    ) -> bool {
        self.own.machine.accepts(verdict)
            && facts.lease.holder.is_some()
            && facts.session == self.config.instance
            && (facts.life, facts.lease.epoch) == (life, epoch)
    }

    pub(super) fn draft(held: bool, epoch: Epoch, seq: u64, nonce: Nonce, now: Reading) -> Draft {
        Draft { held, epoch, seq, nonce, renewed_at: now.wall, sign: true, last_snapshot: None }
    }

    /// Up to R/10, later only. `lag`: how long ago what is seen may have happened; with the spread that
    /// stays within R.
    pub(super) fn draw_jitter(&mut self, lag: Duration) -> Duration {
        if self.config.jitter_seed.is_none() {
            return Duration::ZERO;
        }
        // SplitMix64: its only task is to differ between processes.
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.jitter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let left = self.renew().saturating_sub(lag);
        let most = left.clamp(self.retry() / 10, self.retry());
        Duration::from_nanos(mixed % u64::try_from(most.as_nanos()).unwrap_or(u64::MAX).max(1))
    }
}

/// The floor that the clock gives, with the part of the second in its lower 21 bits.
fn moment(wall: WallTime) -> Epoch {
    let floor = clock_floor(wall).as_u64();
    let part = ((wall.unix_nanos() % 1_000_000_000) << 21) / 1_000_000_000;
    Epoch::new(floor + part).unwrap_or(Epoch::MIN)
}
