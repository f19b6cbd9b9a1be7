//! What the tests of leases share: events, records, and leases whose time only the test moves, so that
//! no load of the machine spends a budget.

use bytes::Bytes;
use lease_core::{
    LeaseManager, LeaseStore, StoreErrorKind, Tenure, Timing,
    fencing::{Epoch, MonotonicTime},
    key::InstanceId,
    machine::{Attempted, Event, FirstStart},
    record::{Label, LeaseRecord, Nonce, Ttl},
    runner::{Delivery, EventStream, LeaseBuilder},
    testing::{FaultStore, ManualClock},
};
use lease_s3::testing::TestServer;
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

/// T, R and T − M of a stepped lease. Short, since no nap of a driver is longer than R.
pub(crate) const T: Duration = Duration::from_millis(200);
pub(crate) const R: Duration = Duration::from_millis(20);
pub(crate) const WINDOW: Duration = Duration::from_millis(160);

/// A lease that is held, by a clock that stands still.
pub(crate) struct Stepped {
    pub(crate) clock: ManualClock,
    pub(crate) lease: LeaseManager,
    pub(crate) tenure: Tenure,
    pub(crate) events: EventStream,
    _scratch: tempfile::TempDir,
}

impl Stepped {
    pub(crate) async fn start(store: impl LeaseStore) -> Self {
        let (clock, scratch) = (ManualClock::new(), tempfile::tempdir().unwrap());
        let lease = stepped(store, &clock)
            .instance_dir(scratch.path().join("instance"))
            .first_start(FirstStart::Immediate)
            .start()
            .await
            .unwrap();
        let tenure = lease.acquire().await.unwrap();
        let events = lease.events();
        Self { clock, lease, tenure, events, _scratch: scratch }
    }

    /// Until when the tenure is proved.
    pub(crate) fn deadline(&self) -> MonotonicTime {
        self.lease.status().borrow().deadline.unwrap()
    }
}

pub(crate) fn stepped(store: impl LeaseStore, clock: &ManualClock) -> LeaseBuilder {
    LeaseManager::builder(store, "orders")
        .timing(Timing::short(T, R).unwrap())
        .clock(Arc::new(clock.clone()))
}

/// A server on a runtime of its own, which lives as long as this process.
pub(crate) fn server_elsewhere() -> TestServer {
    let (started, start) = mpsc::channel();
    std::thread::spawn(move || {
        crate::run(async {
            let server = TestServer::start().await.unwrap();
            started.send(server).unwrap();
            std::future::pending::<()>().await;
        });
    });
    start.recv().unwrap()
}

/// Waits until so many operations were answered, and the driver has handled the last of them: on a
/// runtime of one thread, where a task that yields comes behind all that were woken.
pub(crate) async fn handled<S: LeaseStore>(store: &FaultStore<S>, answers: usize) {
    store.faults().wait_for_answers(answers).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// Waits for an event that `choose` wants.
pub(crate) async fn next<T>(events: &mut EventStream, choose: impl Fn(Event) -> Option<T>) -> T {
    loop {
        if let Delivery::Event(event) = events.next().await.unwrap()
            && let Some(chosen) = choose(event)
        {
            return chosen;
        }
    }
}

pub(crate) async fn renewed(events: &mut EventStream) -> MonotonicTime {
    let deadline = |event| match event {
        Event::Renewed { deadline, .. } => Some(deadline),
        Event::Ended { reason, .. } => panic!("{reason}"),
        _ => None,
    };
    next(events, deadline).await
}

pub(crate) async fn failed(events: &mut EventStream) -> (Attempted, StoreErrorKind) {
    let failure = |event| match event {
        Event::StoreFailed { attempted, error } => Some((attempted, error)),
        _ => None,
    };
    next(events, failure).await
}

/// A record of another holder.
pub(crate) fn record_of_another(epoch: u64) -> Bytes {
    LeaseRecord {
        cluster: "orders".parse().unwrap(),
        holder: Some(InstanceId::random().unwrap()),
        holder_name: Label::new("another").unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        seq: 1,
        nonce: Some(Nonce::random().unwrap()),
        renewed_at: Label::default(),
        ttl: Ttl::new(Duration::from_secs(2)).unwrap(),
        key_id: None,
        last_snapshot: None,
        mac: None,
    }
    .encode()
}
