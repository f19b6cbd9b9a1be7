//! How long store operations take while the rounds are played: the part of every bound that the
//! disk and the scheduler decide.

use crate::wire::Moment;
use bytes::Bytes;
use lease_core::{LeaseStore as _, ObjectKey, StoreError, Version};
use lease_local::LocalStore;
use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

struct Sample {
    from: Moment,
    to: Moment,
    read: Duration,
    replace: Duration,
}

/// Reads and replaces an object of its own, again and again.
pub(crate) struct StoreOperations {
    store: LocalStore,
    key: ObjectKey,
    version: Version,
    samples: RefCell<Vec<Sample>>,
    /// When the operation began that is under way.
    under_way: Cell<Option<Moment>>,
}

impl StoreOperations {
    /// Creates the object in `store`.
    pub(crate) async fn start(store: LocalStore, key: ObjectKey) -> Result<Self, StoreError> {
        let version = store.create_if_absent(&key, content(0)).await?;
        let (samples, under_way) = (RefCell::default(), Cell::default());
        Ok(Self { store, key, version, samples, under_way })
    }

    /// Measures until something fails.
    pub(crate) async fn run(&self) -> StoreError {
        let mut version = self.version.clone();
        for number in 1_u64.. {
            match self.measure(&version, number).await {
                Ok(next) => version = next,
                Err(error) => return error,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending().await
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
        self.samples.borrow_mut().push(Sample { from, to, read, replace });
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
