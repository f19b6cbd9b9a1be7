//! How long store operations take while the rounds are played: the part of every bound that the
//! disk or the bucket, and the scheduler, decide.

use crate::wire::Moment;
use bytes::Bytes;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Version};
use std::{
    cell::{Cell, RefCell},
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
}

/// The key of the object.
pub(crate) const KEY: &str = "operations";

/// Reads and replaces an object of its own, again and again.
pub(crate) struct StoreOperations {
    store: Arc<dyn LeaseStore>,
    key: ObjectKey,
    version: Version,
    samples: RefCell<Vec<Sample>>,
    /// When the operation began that is under way.
    under_way: Cell<Option<Moment>>,
}

impl StoreOperations {
    /// Creates the object in `store`.
    pub(crate) async fn start(
        store: Arc<dyn LeaseStore>,
        key: ObjectKey,
    ) -> Result<Self, StoreError> {
        let version = store.create_if_absent(&key, content(0)).await?;
        let (samples, under_way) = (RefCell::default(), Cell::default());
        Ok(Self { store, key, version, samples, under_way })
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
                    self.sample(Sample { from, to, read: Duration::ZERO, replace: to.since(from) });
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
        let to = Moment::now();
        self.under_way.set(None);
        let (read, replace) = (read_at.since(from), to.since(read_at));
        self.sample(Sample { from, to, read, replace });
        Ok(next)
    }

    /// One read and one replace, each the slowest that was under way between `from` and `to`; one
    /// that still is counts as long as it has taken.
    pub(crate) fn slowest(&self, from: Moment, to: Moment) -> Duration {
        let samples = self.samples.borrow();
        let during = || samples.iter().filter(|it| it.from <= to && from <= it.to);
        let unfinished = self.under_way.get().filter(|begun| *begun <= to);
        let unfinished = unfinished.map(|begun| Moment::now().since(begun));
        let read = during().map(|it| it.read).max().unwrap_or_default();
        read + during().map(|it| it.replace).chain(unfinished).max().unwrap_or_default()
    }

    /// One read and one replace, the median of all.
    pub(crate) fn median(&self) -> Duration {
        let samples = self.samples.borrow();
        let mut sums: Vec<_> = samples.iter().map(|it| it.read + it.replace).collect();
        sums.sort_unstable();
        sums.get(sums.len() / 2).copied().unwrap_or_default()
    }
}

/// As large as a lease.
fn content(number: u64) -> Bytes {
    format!("{number:0300}").into()
}
