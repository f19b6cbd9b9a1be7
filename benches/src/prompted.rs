//! A lease held and watched through the runner, whose renewals and polls come when they are asked for.
//!
//! Nothing in the runner is bypassed: its clock is set forward by R, and it is woken as any wish of its
//! service wakes it. What it does then is what it does when a timer wakes it.

use crate::{clocks::Ahead, holder};
use async_trait::async_trait;
use bytes::Bytes;
use fencing::Clock as _;
use futures_util::FutureExt as _;
use lease_core::{
    LeaseManager, LeaseStore, ObjectKey, Read, StoreError, Tenure, Timing, Version,
    machine::{Event, Role},
    runner::{Delivery, EventStream},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;

const CLUSTER: &str = "orders";

/// Long enough that nothing but R ever comes due by itself.
fn timing() -> Timing {
    Timing::new(Duration::from_secs(300), Duration::from_secs(60)).expect("it is in range")
}

/// A lease that is held through the runner.
#[derive(Debug)]
pub struct Renewing {
    lease: LeaseManager,
    tenure: Tenure,
    events: EventStream,
    clock: Ahead,
}

impl Renewing {
    /// Acquires the lease on `store`.
    pub async fn on(store: impl LeaseStore) -> Self {
        let clock = Ahead::default();
        let lease = LeaseManager::builder(store, CLUSTER)
            .timing(timing())
            .ephemeral_instance()
            .secret(holder::secret())
            .clock(Arc::new(clock.clone()))
            .start()
            .await
            .expect("the store is there");
        let tenure = lease.take_over().await.expect("nobody else wants it");
        // The lease was missing: its hold-back passes by the clock, with renewals meanwhile.
        let mut confirmed = Box::pin(tenure.confirm());
        loop {
            tokio::select! {
                confirmed = &mut confirmed => break confirmed.expect("nobody else wants it"),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            clock.advance(timing().renew() / 4);
            wake(&lease);
        }
        drop(confirmed);
        let events = lease.events();
        Self { lease, tenure, events, clock }
    }

    /// One renewal, from when it is due until the fence is extended and it was told.
    pub async fn renew(&mut self) {
        self.clock.advance(timing().renew());
        // One that was under way may be told yet.
        let own = self.clock.monotonic() + timing().window();
        wake(&self.lease);
        let is_own = |it: &Event| matches!(it, Event::Renewed { deadline, .. } if *deadline >= own);
        loop {
            match self.events.next().await {
                Some(Delivery::Event(event)) if is_own(&event) => return,
                _ => assert_eq!(self.lease.status().borrow().role, Role::Active),
            }
        }
    }

    /// Whether it is still held.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tenure.fence().is_open()
    }
}

/// A standby that watches the lease of another through the runner.
#[derive(Debug)]
pub struct Watching {
    lease: LeaseManager,
    clock: Ahead,
    answered: Arc<Notify>,
}

impl Watching {
    /// Watches the lease on `store`, which is held by another.
    pub async fn on(store: impl LeaseStore) -> Self {
        let (clock, answered) = (Ahead::default(), Arc::new(Notify::new()));
        let lease = LeaseManager::builder(Told(store, Arc::clone(&answered)), CLUSTER)
            .timing(timing())
            .ephemeral_instance()
            .secret(holder::secret())
            .clock(Arc::new(clock.clone()))
            .start()
            .await
            .expect("the store is there");
        let mut status = lease.status();
        let seen = status.wait_for(|status| status.lease.is_some()).await;
        drop(seen.expect("it was started"));
        let mut watching = Self { lease, clock, answered };
        watching.poll().await;
        watching
    }

    /// One poll, from when it is due until the machine has its answer.
    pub async fn poll(&mut self) {
        // No two polls are further apart.
        self.clock.advance(timing().renew() + timing().renew() / 10);
        let answered = self.answered.notified();
        wake(&self.lease);
        answered.await;
        // The store told before the driver had its answer: the driver comes next.
        tokio::task::yield_now().await;
    }
}

/// Wakes the driver, as a wish does that is given up at once.
fn wake(lease: &LeaseManager) {
    let wished = lease.acquire().now_or_never();
    assert!(wished.is_none(), "nothing is acquired in a moment");
}

/// A store that tells when it has answered a read.
#[derive(Debug)]
struct Told<S>(S, Arc<Notify>);

#[async_trait]
impl<S: LeaseStore> LeaseStore for Told<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let read = self.0.read_versioned(key, unless).await;
        self.1.notify_waiters();
        read
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        self.0.create_if_absent(key, content).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        self.0.replace_if_match(key, content, version).await
    }

    fn needs_probe(&self) -> bool {
        self.0.needs_probe()
    }

    fn max_object_bytes(&self) -> usize {
        self.0.max_object_bytes()
    }
}
