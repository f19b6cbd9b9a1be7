//! What an instance may lose its tenure by, judged by what was seen beside its manager: by its store, and
//! by the server.

use super::Sum;
use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{
    LeaseStore, ObjectKey, Read, StoreError, Version,
    fencing::{Clock as _, Epoch, MonotonicTime, SystemClock},
    machine::{EndReason, Event},
    record::LeaseRecord,
    runner::{Delivery, EventStream, Status},
};
use lease_s3::testing::TestServer;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::sync::watch;

/// What may lie between a manager and its store on a host that has nothing else to do.
const SLACK: Duration = Duration::from_millis(20);

/// How late tasks run on this host, seen by one that sleeps again and again.
#[derive(Debug, Default)]
pub(super) struct Lag(Mutex<VecDeque<(MonotonicTime, Duration)>>);

impl Lag {
    /// Sleeps for a moment, and notes by how much it was too long.
    pub(super) async fn sleep(&self) {
        let (clock, moment) = (SystemClock::new(), Duration::from_millis(1));
        let began = clock.monotonic();
        tokio::time::sleep(moment).await;
        let now = clock.monotonic();
        let mut lags = self.0.lock().unwrap();
        lags.push_back((now, began.until(now).saturating_sub(moment)));
        lags.retain(|(at, _)| at.until(now) < Duration::from_secs(1));
    }

    /// What may lie between a manager and its store on this host, as it was in the last second.
    fn slack(&self) -> Duration {
        let lags = self.0.lock().unwrap();
        SLACK + lags.iter().map(|(_, lag)| *lag).max().unwrap_or_default() * 3
    }
}

/// A write that succeeded.
#[derive(Clone, Copy, Debug)]
struct Written {
    sent: MonotonicTime,
    answered: MonotonicTime,
}

type Writes = Arc<Mutex<Vec<Written>>>;

/// Passes everything through, and notes the writes that succeeded.
#[derive(Clone, Debug)]
pub(super) struct Noting<S> {
    inner: S,
    writes: Writes,
}

impl<S> Noting<S> {
    pub(super) fn new(inner: S, judge: &Judge) -> Self {
        Self { inner, writes: Arc::clone(&judge.writes) }
    }

    fn note(&self, sent: MonotonicTime, version: &Result<Version, StoreError>) {
        if version.is_ok() {
            let answered = SystemClock::new().monotonic();
            self.writes.lock().unwrap().push(Written { sent, answered });
        }
    }
}

#[async_trait]
impl<S: LeaseStore> LeaseStore for Noting<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        self.inner.read_versioned(key, unless).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        let sent = SystemClock::new().monotonic();
        let version = self.inner.create_if_absent(key, content).await;
        self.note(sent, &version);
        version
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let sent = SystemClock::new().monotonic();
        let version = self.inner.replace_if_match(key, content, version).await;
        self.note(sent, &version);
        version
    }

    fn needs_probe(&self) -> bool {
        self.inner.needs_probe()
    }
}

/// Judges how the tenures of one instance end.
pub(super) struct Judge {
    server: Arc<TestServer>,
    object: String,
    window: Duration,
    writes: Writes,
    lag: Arc<Lag>,
    pub(super) sum: Arc<Sum>,
}

impl Judge {
    pub(super) fn new(
        server: Arc<TestServer>,
        cluster: &str,
        window: Duration,
        lag: Arc<Lag>,
        sum: Arc<Sum>,
    ) -> Self {
        let object = format!("p/{cluster}/lease.json");
        Self { server, object, window, writes: Writes::default(), lag, sum }
    }

    pub(super) async fn listen(self, mut events: EventStream, status: watch::Receiver<Status>) {
        let mut told = None;
        while let Some(delivery) = events.next().await {
            match delivery {
                Delivery::Event(Event::TakingOver { .. }) => told = status.borrow().deadline,
                Delivery::Event(Event::Renewed { deadline, .. }) => {
                    self.sum.renewals.fetch_add(1, SeqCst);
                    told = Some(deadline);
                }
                Delivery::Event(Event::Ended { epoch, reason }) => {
                    self.ended(epoch, &reason, told.take());
                }
                Delivery::Event(_) | Delivery::Missed(_) => {}
            }
        }
    }

    fn ended(&self, epoch: Epoch, reason: &EndReason, told: Option<MonotonicTime>) {
        let now = SystemClock::new().monotonic();
        let writes = std::mem::take(&mut *self.writes.lock().unwrap());
        match reason {
            EndReason::Expired => {
                self.sum.expired.fetch_add(1, SeqCst);
                if let Some(told) = told
                    && now < self.proved(told, &writes)
                {
                    println!(
                        "{} of epoch {epoch} ended at {now:?}, proved until {told:?} as told, and by {writes:?}",
                        self.object
                    );
                    self.sum.lost_while_renewed.fetch_add(1, SeqCst);
                }
            }
            EndReason::TakenOver { .. }
            | EndReason::Lost
            | EndReason::Deleted
            | EndReason::Replaced { .. } => {
                self.sum.taken.fetch_add(1, SeqCst);
                if self.still_shows(epoch) {
                    self.sum.lost_to_nobody.fetch_add(1, SeqCst);
                }
            }
            _ => {}
        }
    }

    /// Until when the tenure was proved: as its manager told last, and by the writes that were sent
    /// after S of that and answered before its S + T − M.
    fn proved(&self, told: MonotonicTime, writes: &[Written]) -> MonotonicTime {
        let slack = self.lag.slack();
        writes.iter().fold(told, |proved, write| {
            let is_in_time = write.answered + slack < proved;
            // The manager counts from when it decided to send, which is a little earlier.
            if is_in_time { proved.max(write.sent + self.window - slack) } else { proved }
        })
    }

    /// Whether the lease is still one of this epoch: nobody deletes or spoils it here, so that it was
    /// lost to another only if it shows another.
    fn still_shows(&self, epoch: Epoch) -> bool {
        let content = self.server.content(&self.object);
        let record = content.and_then(|content| LeaseRecord::decode(&content).ok());
        record.is_some_and(|record| record.epoch == epoch && !record.is_released())
    }
}
