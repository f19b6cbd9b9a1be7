//! What the tests of the runner share: T = 10 s, R = 2 s, stores with faults, paused time.

use lease_core::{
    LeaseManager, Timing,
    auth::Authenticator,
    fencing::Epoch,
    machine::{EndReason, Event, Role},
    record::LeaseRecord,
    runner::{Delivery, EventStream, LeaseBuilder},
    testing::{FaultStore, MemoryStore, Op, TokioClock},
};
use std::{sync::Arc, time::Duration};

pub(crate) const T: Duration = Duration::from_secs(10);
pub(crate) const R: Duration = Duration::from_secs(2);
/// T − M.
pub(crate) const WINDOW: Duration = Duration::from_secs(8);

pub(crate) struct Rig {
    pub(crate) memory: MemoryStore,
    pub(crate) store: FaultStore<MemoryStore>,
    pub(crate) clock: TokioClock,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let memory = MemoryStore::new();
        Self { store: FaultStore::new(memory.clone()), memory, clock: TokioClock::new() }
    }

    /// A builder on the store with faults.
    pub(crate) fn builder(&self) -> LeaseBuilder {
        let timing = Timing::short(T, R).unwrap();
        LeaseManager::builder(self.store.clone(), "orders")
            .timing(timing)
            .ephemeral_instance()
            .clock(Arc::new(self.clock.clone()))
    }

    /// A manager on the same store that meets no faults.
    pub(crate) async fn other(&self) -> LeaseManager {
        let timing = Timing::short(T, R).unwrap();
        LeaseManager::builder(self.memory.clone(), "orders")
            .timing(timing)
            .ephemeral_instance()
            .clock(Arc::new(self.clock.clone()))
            .start()
            .await
            .unwrap()
    }

    /// How many conditional replacements were sent.
    pub(crate) fn replaces(&self) -> usize {
        self.store.faults().count(Op::Replace)
    }

    /// The record that the store holds.
    pub(crate) fn record(&self) -> LeaseRecord {
        let key = "orders/lease.json".parse().unwrap();
        let content = self.memory.content(&key).unwrap();
        let auth = Authenticator::new("orders".parse().unwrap(), None);
        auth.judge(&content).record.unwrap()
    }
}

/// Waits for the end of the tenure `epoch`, and tells its reason.
pub(crate) async fn end_of(events: &mut EventStream, epoch: Epoch) -> EndReason {
    loop {
        match events.next().await.unwrap() {
            Delivery::Event(Event::Ended { epoch: ended, reason }) if ended == epoch => {
                return reason;
            }
            Delivery::Event(_) => {}
            Delivery::Missed(count) => unreachable!("missed {count} events"),
        }
    }
}

/// How many tenures ended so far in what is left of the stream.
pub(crate) async fn ends_left(mut events: EventStream) -> usize {
    let mut count = 0;
    while let Some(delivery) = events.next().await {
        count += usize::from(matches!(delivery, Delivery::Event(Event::Ended { .. })));
    }
    count
}

pub(crate) async fn role_becomes(lease: &LeaseManager, role: Role) {
    lease.status().wait_for(|status| status.role == role).await.unwrap();
}
