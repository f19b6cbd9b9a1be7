//! Many leases in one process, each with a manager of its own, in paused time: waiting costs nothing,
//! what is waited with does.

use crate::holder;
use futures_util::future::join_all;
use lease_core::{
    LeaseManager, Tenure, Timing,
    testing::{MemoryStore, TokioClock},
};
use std::{fmt, sync::Arc, time::Duration};
use tokio::runtime::Runtime;

/// Leases that are held in one process.
pub struct Held {
    runtime: Runtime,
    store: MemoryStore,
    leases: Vec<(LeaseManager, Tenure)>,
    timing: Timing,
    /// Bytes that they have on the heap, the store's included.
    heap_bytes: i64,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("leases", &self.leases.len()).finish_non_exhaustive()
    }
}

impl Held {
    /// So many leases, acquired so that their renewals are spread over R.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime needs no more than a thread");
        let (store, timing) = (MemoryStore::new(), Timing::default());
        let mut leases = Vec::with_capacity(count as usize);
        let counted = allocation_counter::measure(|| {
            leases = runtime.block_on(acquired(count, &store, timing));
        });
        assert_eq!(leases.len(), count as usize);
        Self { runtime, store, leases, timing, heap_bytes: counted.bytes_current }
    }

    /// Lets time pass until about so many renewals have come, and tells how many it were.
    pub fn renewals(&self, about: u32) -> u64 {
        let before = self.store.requests();
        let span = self.timing.renew() * about / u32::try_from(self.leases.len()).unwrap_or(1);
        self.runtime.block_on(async { tokio::time::sleep(span).await });
        self.store.requests().since(before).replaces
    }

    /// What each lease has on the heap, its record in the store included.
    #[must_use]
    pub fn bytes_each(&self) -> f64 {
        self.heap_bytes as f64 / self.leases.len() as f64
    }

    /// R.
    #[must_use]
    pub fn renew(&self) -> Duration {
        self.timing.renew()
    }

    /// Whether all are held.
    #[must_use]
    pub fn are_open(&self) -> bool {
        self.leases.iter().all(|(_, tenure)| tenure.fence().is_open())
    }
}

async fn acquired(count: u32, store: &MemoryStore, timing: Timing) -> Vec<(LeaseManager, Tenure)> {
    let clock = Arc::new(TokioClock::new());
    let acquire = (0..count).map(|number| {
        let (store, clock) = (store.clone(), Arc::clone(&clock));
        async move {
            tokio::time::sleep(timing.renew() * number / count).await;
            let lease = LeaseManager::builder(store, &format!("lease-{number}"))
                .timing(timing)
                .ephemeral_instance()
                .secret(holder::secret())
                .clock(clock)
                .start()
                .await
                .expect("the store is there");
            let tenure = lease.acquire().await.expect("nobody else wants it");
            (lease, tenure)
        }
    });
    let leases = join_all(acquire).await;
    tokio::time::sleep(timing.ttl()).await;
    leases
}
