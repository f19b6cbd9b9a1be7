//! The loop that drives one machine: carries out what it wants, hands in what happened, and sleeps
//! until it has to be woken. The clock is read before anything is handed in.

use super::{
    builder::EpochFloor,
    report::Report,
    requests::{LONGEST_SLEEP, OsEntropy, Requests, persist, read, write},
    shared::{Phase, Shared, TenureState, Wish},
    status::Status,
};
use crate::{
    history::InstanceDir,
    key::ObjectKey,
    machine::{
        Action, Config, EndReason, Event, FenceOrder, Machine, Note, Past, Reply, Request,
        RequestId, Role,
    },
    store::{LeaseStore, StoreError, StoreErrorKind, Version},
    wire::{Judged, Wire},
};
use fencing::{Clock, Epoch, FenceControl, MonotonicTime};
use futures_util::FutureExt;
use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use tokio::sync::watch;

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) config: Config,
    pub(super) past: Past,
    pub(super) wire: Arc<Wire>,
    pub(super) store: Arc<dyn LeaseStore>,
    pub(super) key: ObjectKey,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) history: Option<Arc<InstanceDir>>,
    pub(super) epoch_floor: Option<(EpochFloor, Duration)>,
}

/// The answer to one action.
enum Answer {
    Floor(Result<Option<Epoch>, String>),
    Persisted(Result<(), String>),
    Read(Judged, Option<StoreError>),
    Written(Result<Version, StoreError>),
}

pub(super) struct Driver {
    machine: Machine,
    parts: Parts,
    shared: Arc<Shared>,
    report: Report,
    tenure: Option<Arc<TenureState>>,
    requests: Requests<Answer>,
}

/// Runs a driver to its end. (In a box: a future holds what is moved into it more than once.)
pub(super) async fn drive(mut driver: Box<Driver>) {
    driver.run().await;
}

impl Driver {
    pub(super) fn new(parts: Parts, shared: Arc<Shared>, status: watch::Sender<Status>) -> Self {
        let now = parts.clock.reading();
        let machine = Machine::new(parts.config.clone(), parts.past.clone(), now);
        let report = Report::new(&parts, status, Arc::clone(&shared));
        Self { machine, parts, shared, report, tenure: None, requests: Requests::new() }
    }

    /// Runs until the machine has stopped.
    async fn run(&mut self) {
        while !self.shared.abort.is_cancelled() {
            let now = self.parts.clock.reading();
            self.machine.handle_timeout(now);
            self.hand_in_wishes();
            self.settle();
            if matches!(self.machine.role(), Role::Stopped | Role::Refused) {
                return;
            }
            self.sleep().await;
        }
    }

    /// Until there is something to do. A nap after which nothing has changed costs a look at the clock:
    /// with a long R most of them are so, and with many leases they are what is paid for.
    async fn sleep(&mut self) {
        let (shared, epoch) = (Arc::clone(&self.shared), self.machine.epoch());
        let (mut woken, mut aborted) =
            (pin!(shared.wake.notified()), pin!(shared.abort.cancelled()));
        loop {
            let nap = self.nap();
            tokio::select! {
                biased;
                (id, answer) = self.requests.answer() => return self.answered(id, answer),
                () = &mut woken => return,
                () = &mut aborted => return,
                () = tokio::time::sleep(nap) => {}
            }
            let now = self.parts.clock.reading();
            self.machine.handle_timeout(now);
            // A wall clock can end a tenure before anything is due.
            let is_due = self.machine.poll_timeout(now).is_some_and(|due| due <= now.monotonic);
            if is_due || self.machine.epoch() != epoch {
                return;
            }
        }
    }

    fn nap(&self) -> Duration {
        let now = self.parts.clock.reading();
        let wake = self.machine.poll_timeout(now).unwrap_or(MonotonicTime::MAX);
        // A timer that fires a moment early would spin until the clock agrees.
        let longest = LONGEST_SLEEP.max(self.parts.config.timing.renew() / 4);
        let nap = now.monotonic.until(wake).min(longest);
        nap + Duration::from_micros(u64::from(!nap.is_zero()))
    }

    /// What the handles want, as it stands now.
    fn hand_in_wishes(&mut self) {
        let now = self.parts.clock.reading();
        if self.shared.is_stopped() {
            self.machine.stop(now);
        }
        self.machine.want(self.shared.is_wanted(), now);
        let Some(tenure) = &self.tenure else { return };
        // Before a wish to confirm: what is confirmed names what was restored.
        if let Some(mark) = tenure.snapshot() {
            self.machine.name_snapshot(mark, now);
        }
        match tenure.wish() {
            Wish::Hold => {}
            Wish::Confirm => self.machine.confirm(now),
            Wish::Abandon(reason) => self.machine.abandon(reason.into(), now),
            Wish::Release => self.machine.release(now),
            Wish::Drop => self.machine.drop_tenure(false, now),
            Wish::Fail => self.machine.drop_tenure(true, now),
        }
    }

    /// Carries out what the machine wants until it wants nothing more.
    fn settle(&mut self) {
        // Drawn here and not kept: a copy of this process, or of its machine, must not have the same.
        let mut entropy = OsEntropy::default();
        loop {
            let now = self.parts.clock.reading();
            let action = match entropy.is_ready() {
                true => self.machine.poll_action(now, &mut entropy),
                // Without random bits nothing can be written; the deadline ends what is held.
                false => None,
            };
            let was_idle = action.is_none();
            if let Some(action) = action {
                self.act(action);
            }
            let mut was_quiet = true;
            while let Some(event) = self.machine.poll_event() {
                was_quiet = false;
                self.happened(event);
            }
            if was_idle && was_quiet {
                break;
            }
        }
        self.report.refresh(&self.machine, self.parts.clock.reading());
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Fence(order) => self.order_fence(order),
            Action::FetchFloor(id) => self.fetch_floor(id),
            Action::Forget(id) => self.requests.forget(id),
            Action::Persist(id, note) => self.persist(id, note),
            Action::Send(id, request) => self.send(id, request),
        }
    }

    fn order_fence(&mut self, order: FenceOrder) {
        let Some(tenure) = &self.tenure else { return };
        let result = match order {
            FenceOrder::Open { sent, window } => tenure.with_control(|it| it.open(sent, window)),
            FenceOrder::Extend { sent, window } => {
                tenure.with_control(|it| it.extend(sent, window))
            }
            FenceOrder::Shut => {
                tenure.shut();
                Ok(())
            }
        };
        if let Err(shut) = result {
            tracing::warn!(epoch = %shut.epoch, reason = %shut.reason, "the fence is shut already");
            tenure.shut();
            self.machine.handle_fence_shut(shut.epoch, self.parts.clock.reading());
        }
    }

    fn send(&mut self, id: RequestId, request: Request) {
        let (store, key) = (Arc::clone(&self.parts.store), self.parts.key.clone());
        let wire = &self.parts.wire;
        let (content, condition) = match request {
            Request::Create(draft) => (wire.encode(&draft), None),
            Request::Replace(draft, version) => (wire.encode(&draft), Some(version)),
            Request::Read { unless } => {
                let wire = Arc::clone(wire);
                return self.requests.send(id, async move {
                    let read = read(store, key, unless).await;
                    let error = read.as_ref().err().cloned();
                    Answer::Read(wire.judge(read), error)
                });
            }
        };
        self.requests.send(id, write(store, key, content, condition).map(Answer::Written));
    }

    fn fetch_floor(&mut self, id: RequestId) {
        let Some((floor, limit)) = self.parts.epoch_floor.clone() else { return };
        self.requests.send(id, async move {
            let asked = AssertUnwindSafe(async move { floor().await }).catch_unwind();
            Answer::Floor(match tokio::time::timeout(limit, asked).await {
                Ok(Ok(told)) => told.map_err(|error| error.to_string()),
                Ok(Err(_)) => Err("asking for it panicked".to_owned()),
                Err(_) => Err(format!("it was not told within {limit:?}")),
            })
        });
    }

    fn persist(&mut self, id: RequestId, note: Note) {
        let Some(dir) = self.parts.history.clone() else { return };
        let cluster = self.parts.wire.auth.cluster().clone();
        self.requests.send(id, persist(dir, cluster, note).map(Answer::Persisted));
    }

    fn answered(&mut self, id: RequestId, answer: Answer) {
        let now = self.parts.clock.reading();
        match answer {
            Answer::Floor(told) => {
                let told = self.report.noted(told).map_err(|()| StoreErrorKind::Unavailable);
                self.machine.handle_floor(id, told, now);
            }
            Answer::Persisted(written) => {
                let ok = self.report.noted(written).is_ok();
                self.machine.handle_persisted(id, ok, now);
            }
            Answer::Read(Judged { reply, foreign_key }, error) => {
                self.report.read(foreign_key, error);
                self.machine.handle_reply(id, reply, now);
            }
            Answer::Written(result) => {
                let reply = match self.report.wrote(result) {
                    Ok(version) => Reply::Written(version),
                    Err(kind) => Reply::Failed(kind),
                };
                self.machine.handle_reply(id, reply, now);
            }
        }
    }

    fn happened(&mut self, event: Event) {
        match &event {
            Event::TakingOver { epoch, predecessor, held_back_until } => {
                let control = FenceControl::new(*epoch, Arc::clone(&self.parts.clock));
                let lost = self.shared.stopping.child_token();
                // A tenure that is over already has no one to tell.
                let inherited = self.machine.inherited().cloned().unwrap_or_default();
                let predecessor = predecessor.clone();
                let tenure =
                    TenureState::new(control, predecessor, inherited, *held_back_until, lost);
                let tenure = Arc::new(tenure);
                self.tenure = Some(Arc::clone(&tenure));
                if self.shared.is_wanted() {
                    self.shared.offer(tenure);
                } else {
                    // Whoever wanted it has gone meanwhile.
                    tenure.set_wish(Wish::Release);
                    self.shared.wake.notify_one();
                }
            }
            Event::Active { .. } => {
                if let Some(tenure) = &self.tenure {
                    tenure.set_phase(Phase::Active);
                }
            }
            Event::Ended { reason, .. } => {
                if let Some(tenure) = self.tenure.take() {
                    tenure.set_phase(Phase::Ended(reason.clone()));
                }
            }
            _ => {}
        }
        self.report.event(event);
    }
}

impl Drop for Driver {
    /// However the driver ends, a panic or the end of its runtime included: nothing renews any
    /// more, so the fence is shut and the work is told.
    fn drop(&mut self) {
        if let Some(tenure) = self.tenure.take() {
            tenure.set_phase(Phase::Ended(EndReason::Dropped));
        }
        self.shared.events.end();
    }
}
