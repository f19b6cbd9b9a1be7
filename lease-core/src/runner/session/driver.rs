//! The loop that drives one session: carries out what its machine wants, hands in what happened, and
//! sleeps until it has to be woken. The clock is read before anything is handed in.

mod asked;
mod happened;

use super::{
    super::requests::{LONGEST_SLEEP, OsEntropy, Requests, persist, read, write},
    report::Report,
    shared::{Acquired, Command, Named, Shared, Wish},
    status::SessionStatus,
};
use crate::{
    ObjectKey,
    history::InstanceDir,
    machine::{EndReason, FenceOrder, Note, Past, RequestId, Role},
    session::{
        Action, Config, Event, LeaseEndReason, LeaseFenceOrder, NamedSeen, Object, Reply, Request,
        SessionMachine,
    },
    store::{LeaseStore, StoreError, Version},
    wire::{Judged, Wire},
};
use fencing::{Clock, Epoch, FenceControl, MonotonicTime};
use futures_util::FutureExt;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) config: Config,
    pub(super) past: Past,
    pub(super) wire: Arc<Wire>,
    pub(super) store: Arc<dyn LeaseStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) history: Option<Arc<InstanceDir>>,
}

/// The answer to one action.
enum Answer {
    Persisted(Result<(), String>),
    Read(Judged<Reply>, Option<StoreError>),
    Written(Result<Version, StoreError>),
}

/// Who waits for a lease.
struct Waiter {
    ticket: u64,
    wait: bool,
    answer: oneshot::Sender<Acquired>,
}

pub(super) struct Driver {
    machine: SessionMachine,
    parts: Parts,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    report: Report,
    /// The fence of the session's life.
    control: Option<FenceControl>,
    waiters: HashMap<ObjectKey, Waiter>,
    /// Tenures whose fences were told to open, until they end.
    held: HashMap<ObjectKey, Arc<Named>>,
    /// Leases that were left with something that may still act, and when they are given back. In
    /// that order, since all wait for the same T.
    lapsing: VecDeque<(MonotonicTime, ObjectKey, Epoch)>,
    watchers: HashMap<ObjectKey, watch::Sender<Option<NamedSeen>>>,
    requests: Requests<Answer>,
}

/// Runs a driver to its end. (In a box: a future holds what is moved into it more than once.)
pub(super) async fn drive(mut driver: Box<Driver>) {
    driver.run().await;
}

impl Driver {
    pub(super) fn new(
        parts: Parts,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
        status: watch::Sender<SessionStatus>,
        events: broadcast::Sender<Event>,
    ) -> Self {
        let now = parts.clock.reading();
        let machine = SessionMachine::new(parts.config.clone(), parts.past.clone(), now);
        let report = Report::new(&parts, status, events);
        Self {
            machine,
            parts,
            shared,
            commands,
            report,
            control: None,
            waiters: HashMap::new(),
            held: HashMap::new(),
            lapsing: VecDeque::new(),
            watchers: HashMap::new(),
            requests: Requests::new(),
        }
    }

    /// Runs until the session has ended for good.
    async fn run(&mut self) {
        while !self.shared.abort.is_cancelled() {
            let now = self.parts.clock.reading();
            self.machine.handle_timeout(now);
            self.take_what_was_left();
            self.give_back_what_lapsed();
            if self.shared.is_stopped() {
                self.machine.stop(self.parts.clock.reading());
            }
            self.settle();
            if matches!(self.machine.role(), Role::Stopped | Role::Refused) {
                return;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                (id, answer) = self.requests.answer() => {
                    self.answered(id, answer);
                    // Whatever else has come meanwhile goes along, before the machine is asked again.
                    while let Some((id, answer)) = self.requests.answer().now_or_never() {
                        self.answered(id, answer);
                    }
                }
                Some(command) = self.commands.recv() => self.asked(command),
                () = self.shared.wake.notified() => {}
                () = self.shared.abort.cancelled() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
    }

    fn nap(&self) -> Duration {
        let now = self.parts.clock.reading();
        let wake = self.machine.poll_timeout(now).unwrap_or(MonotonicTime::MAX);
        let lapse = self.lapsing.front().map_or(MonotonicTime::MAX, |(due, ..)| *due);
        // A timer that fires a moment early would spin until the clock agrees.
        let nap = now.monotonic.until(wake.min(lapse)).min(LONGEST_SLEEP);
        nap + Duration::from_micros(u64::from(!nap.is_zero()))
    }

    /// Carries out what the machine wants until it wants nothing more. Events come after all actions:
    /// a lease is told acquired once its fence was made.
    fn settle(&mut self) {
        // Drawn here and not kept: a copy of this process, or of its machine, must not have the same.
        let mut entropy = OsEntropy::default();
        loop {
            // Without random bits nothing can be written; the deadline ends what is held.
            while entropy.is_ready() {
                let now = self.parts.clock.reading();
                let Some(action) = self.machine.poll_action(now, &mut entropy) else { break };
                self.act(action);
            }
            let mut was_quiet = true;
            while let Some(event) = self.machine.poll_event() {
                was_quiet = false;
                self.happened(event);
            }
            if was_quiet {
                break;
            }
        }
        // Thousands that were wanted at once leave no room behind.
        if self.waiters.capacity() > 4 * self.waiters.len().max(16) {
            self.waiters.shrink_to(2 * self.waiters.len());
        }
        self.report.refresh(&self.machine, self.held.len());
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Fence { epoch, order } => self.order_fence(epoch, order),
            Action::Forget(id) => self.requests.forget(id),
            Action::LeaseFence { lease, epoch, order } => {
                self.order_lease_fence(&lease, epoch, order);
            }
            Action::Persist(id, note) => self.persist(id, note),
            Action::Send { id, object, request } => self.send(id, object, request),
        }
    }

    fn order_fence(&mut self, epoch: Epoch, order: FenceOrder) {
        let result = match (order, &mut self.control) {
            (FenceOrder::Open { sent, window }, control) => {
                let clock = Arc::clone(&self.parts.clock);
                control.insert(FenceControl::new(epoch, clock)).open(sent, window)
            }
            (FenceOrder::Extend { sent, window }, Some(control)) => control.extend(sent, window),
            (FenceOrder::Shut, control) => {
                *control = None; // dropping it shuts it, and every fence under it
                Ok(())
            }
            (FenceOrder::Extend { .. }, None) => Ok(()),
        };
        if let Err(shut) = result {
            self.report.fence_shut(&shut);
            self.control = None;
            self.machine.handle_fence_shut(epoch, self.parts.clock.reading());
        }
    }

    fn order_lease_fence(&mut self, lease: &ObjectKey, epoch: Epoch, order: LeaseFenceOrder) {
        let result = match order {
            LeaseFenceOrder::Open { sent, window } => {
                let Some(session) = &self.control else {
                    let now = self.parts.clock.reading();
                    return self.machine.handle_lease_fence_shut(lease, epoch, now);
                };
                let mut control = FenceControl::under(&session.fence(), epoch);
                let opened = control.open(sent, window);
                let lost = self.shared.stopping.child_token();
                let named = Arc::new(Named::new(lease.clone(), control, lost));
                self.held.insert(lease.clone(), named);
                opened
            }
            LeaseFenceOrder::Extend { sent, window } => {
                match self.held.get(lease).filter(|named| named.wish() == Wish::Hold) {
                    Some(named) => named.with_control(|control| control.extend(sent, window)),
                    // Its holder has shut it; it is given back in its own time.
                    None => Ok(()),
                }
            }
            LeaseFenceOrder::Shut => match self.held.get(lease) {
                Some(named) => named.with_control(|control| {
                    control.shut();
                    Ok(())
                }),
                None => Ok(()),
            },
        };
        if result.is_err() {
            self.machine.handle_lease_fence_shut(lease, epoch, self.parts.clock.reading());
        }
    }

    fn send(&mut self, id: RequestId, object: Object, request: Request) {
        let (store, wire) = (Arc::clone(&self.parts.store), Arc::clone(&self.parts.wire));
        let key = wire.object_key(&object);
        let (content, condition) = match request {
            Request::Create(draft) => (wire.encode_object(&draft, &key), None),
            Request::Replace(draft, version) => (wire.encode_object(&draft, &key), Some(version)),
            Request::Read { unless } => {
                return self.requests.send(id, async move {
                    let read = read(store, key, unless).await;
                    let error = read.as_ref().err().cloned();
                    Answer::Read(wire.judge_object(read, &object), error)
                });
            }
        };
        self.requests.send(id, write(store, key, content, condition).map(Answer::Written));
    }

    fn persist(&mut self, id: RequestId, note: Note) {
        let Some(dir) = self.parts.history.clone() else { return };
        let cluster = self.parts.wire.auth.cluster().clone();
        self.requests.send(id, persist(dir, cluster, note).map(Answer::Persisted));
    }

    fn answered(&mut self, id: RequestId, answer: Answer) {
        let now = self.parts.clock.reading();
        match answer {
            Answer::Persisted(written) => {
                let ok = self.report.noted(written).is_some();
                self.machine.handle_persisted(id, ok, now);
            }
            Answer::Read(Judged { reply, foreign_key }, error) => {
                let error = error.map_or(Ok(()), |error| Err(error.to_string()));
                let _ = self.report.noted(error);
                if foreign_key {
                    self.report.foreign_key();
                }
                self.machine.handle_reply(id, reply, now);
            }
            Answer::Written(result) => {
                let kind = result.as_ref().err().map(StoreError::kind);
                let written = self.report.noted(result.map_err(|error| error.to_string()));
                let reply = match (written, kind) {
                    (Some(version), _) => Reply::Written(version),
                    (None, kind) => Reply::Failed(kind.unwrap_or(crate::StoreErrorKind::InDoubt)),
                };
                self.machine.handle_reply(id, reply, now);
            }
        }
    }
}

impl Drop for Driver {
    /// However the driver ends, a panic or the end of its runtime included: nothing renews any more,
    /// so every fence is shut and all work is told.
    fn drop(&mut self) {
        self.control = None;
        for (_, named) in self.held.drain() {
            named.end(LeaseEndReason::Session(EndReason::Dropped));
        }
    }
}
