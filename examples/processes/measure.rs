//! How long store operations take while the rounds are played: the part of every bound that the
//! disk or the bucket, and the scheduler, decide.

use super::moment::Moment;
use bytes::Bytes;
use fencing::durable;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Version};
use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

/// So many failures in a row are no passing trouble.
const FAILURES: u32 = 5;

struct Sample {
    from: Moment,
    to: Moment,
    read: Duration,
    replace: Duration,
    history: Duration,
}

/// The key of the object.
pub(crate) const KEY: &str = "operations";

/// Reads and replaces an object of its own, again and again.
pub(crate) struct StoreOperations {
    store: Arc<dyn LeaseStore>,
    key: ObjectKey,
    version: Version,
    /// A file on the disk where the instances remember what they did, if the lease is not there.
    history: Option<PathBuf>,
    samples: RefCell<Vec<Sample>>,
    /// When the operation began that is under way.
    under_way: Cell<Option<Moment>>,
}

impl StoreOperations {
    /// Creates the object in `store`. `history`: a file that is written as an instance's history is,
    /// which every takeover does once. On one disk with the lease that makes no odds.
    pub(crate) async fn start(
        store: Arc<dyn LeaseStore>,
        key: ObjectKey,
        history: Option<PathBuf>,
    ) -> Result<Self, StoreError> {
        let version = store.create_if_absent(&key, content(0)).await?;
        let (samples, under_way) = (RefCell::default(), Cell::default());
        Ok(Self { store, key, version, history, samples, under_way })
    }

    /// Measures until the store keeps failing. An operation that fails counts with the time that it
    /// took to do so.
    pub(crate) async fn run(&self) -> StoreError {
        let (mut version, mut failures) = (self.version.clone(), 0);
        for number in 1_u64.. {
            match self.measure(&version, number).await {
                Ok(next) => (version, failures) = (next, 0),
                Err(error) if failures == FAILURES => return error,
                Err(_) => {
                    failures += 1;
                    // It may have been written, and be another version now.
                    if let Ok(Read::Found { version: current, .. }) =
                        self.store.read_versioned(&self.key, None).await
                    {
                        version = current;
                    }
                    let to = Moment::now();
                    let from = self.under_way.take().unwrap_or(to);
                    let (read, history) = (Duration::ZERO, Duration::ZERO);
                    self.sample(Sample { from, to, read, replace: to.since(from), history });
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending().await
    }

    fn sample(&self, sample: Sample) {
        self.samples.borrow_mut().push(sample);
    }

    async fn measure(&self, version: &Version, number: u64) -> Result<Version, StoreError> {
        let from = Moment::now();
        self.under_way.set(Some(from));
        self.store.read_versioned(&self.key, None).await?;
        let read_at = Moment::now();
        self.under_way.set(Some(read_at));
        let next = self.store.replace_if_match(&self.key, content(number), version).await?;
        let replaced_at = Moment::now();
        self.under_way.set(Some(replaced_at));
        self.remember(number).await;
        let to = Moment::now();
        self.under_way.set(None);
        let (read, replace) = (read_at.since(from), replaced_at.since(read_at));
        self.sample(Sample { from, to, read, replace, history: to.since(replaced_at) });
        Ok(next)
    }

    /// Writes the file. A disk that is full or broken shows itself in the instances, not here.
    async fn remember(&self, number: u64) {
        if let Some(path) = self.history.clone() {
            let write = move || durable::replace(&path, &content(number));
            drop(tokio::task::spawn_blocking(write).await);
        }
    }

    /// One of each operation, each the slowest that was under way between `from` and `to`; one that
    /// still is counts as long as it has taken.
    pub(crate) fn slowest(&self, from: Moment, to: Moment) -> Duration {
        let samples = self.samples.borrow();
        let during = || samples.iter().filter(|it| it.from <= to && from <= it.to);
        let unfinished = self.under_way.get().filter(|begun| *begun <= to);
        let unfinished = unfinished.map(|begun| Moment::now().since(begun));
        let read = during().map(|it| it.read).max().unwrap_or_default();
        let history = during().map(|it| it.history).max().unwrap_or_default();
        let replace = during().map(|it| it.replace).chain(unfinished).max().unwrap_or_default();
        read + replace + history
    }

    /// Whether the history lies on another disk than the lease.
    pub(crate) const fn count_history(&self) -> bool {
        self.history.is_some()
    }

    /// One of each operation, the median of all.
    pub(crate) fn median(&self) -> Duration {
        let samples = self.samples.borrow();
        let mut sums: Vec<_> = samples.iter().map(|it| it.read + it.replace + it.history).collect();
        sums.sort_unstable();
        sums.get(sums.len() / 2).copied().unwrap_or_default()
    }
}

/// As large as a lease.
fn content(number: u64) -> Bytes {
    format!("{number:0300}").into()
}
