//! Many leases in one process, each with a manager of its own: in memory in paused time, where waiting
//! costs nothing and what is waited with does; in a bucket as time goes.

use crate::{
    clocks, holder,
    rows::{
        local::runtime,
        s3::{Bare, Server},
    },
};
use fencing::{Clock, SystemClock};
use futures_util::future::join_all;
use lease_core::{
    LeaseManager, LeaseStore, Tenure, Timing,
    runner::{NamedTenure, SessionManager},
    testing::{MemoryStore, TokioClock},
};
use std::{fmt, io, sync::Arc, time::Duration};
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
        let runtime = paused();
        let (store, timing) = (MemoryStore::new(), Timing::default());
        let clock: Arc<dyn Clock> = runtime.block_on(async { Arc::new(TokioClock::new()) as _ });
        let mut leases = Vec::with_capacity(count as usize);
        let counted = allocation_counter::measure(|| {
            leases = runtime.block_on(acquired(count, &store, &clock, timing));
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

/// Leases that are held in one process in one bucket, by one HTTP client.
#[derive(Debug)]
pub struct InBucket {
    server: Server,
    runtime: Runtime,
    bare: Bare,
    leases: Vec<(LeaseManager, Tenure)>,
    timing: Timing,
    heap_bytes: i64,
}

impl InBucket {
    /// So many leases, acquired so that their renewals are spread over R.
    ///
    /// # Errors
    ///
    /// If no server can be started.
    pub fn new(count: u32) -> io::Result<Self> {
        let timing = Timing::short(Duration::from_secs(6), Duration::from_secs(2));
        let timing = timing.map_err(io::Error::other)?;
        let (server, runtime) = (Server::start()?, runtime()?);
        let bare = Bare::new(server.options("bare").object_store().map_err(io::Error::other)?);
        let store =
            runtime.block_on(server.options("store").connect()).map_err(io::Error::other)?;
        let mut leases = Vec::with_capacity(count as usize);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let counted = allocation_counter::measure(|| {
            leases = runtime.block_on(acquired(count, &store, &clock, timing));
        });
        Ok(Self { server, runtime, bare, leases, timing, heap_bytes: counted.bytes_current })
    }

    /// Lets so much time pass, and tells how much of the processor each renewal took.
    #[must_use]
    pub fn renew_for(&self, span: Duration) -> Duration {
        let (_, before) = (self.server.take_requests(), clocks::thread_time());
        self.runtime.block_on(async { tokio::time::sleep(span).await });
        let took = clocks::thread_time() - before;
        assert!(
            self.leases.iter().all(|(_, tenure)| tenure.fence().is_open()),
            "all are still held"
        );
        took / u32::try_from(self.server.take_requests().put).unwrap_or(u32::MAX).max(1)
    }

    /// The same for bare `put_opts`, as often as the renewals come, once the leases are gone.
    #[must_use]
    pub fn put_for(mut self, span: Duration) -> Duration {
        let every = self.timing.renew() / u32::try_from(self.leases.len()).unwrap_or(1);
        self.leases.clear();
        let before = clocks::thread_time();
        let puts = self.runtime.block_on(async {
            let mut ticks = tokio::time::interval(every);
            let mut puts = 0;
            while every * puts < span {
                ticks.tick().await;
                self.bare.put().await;
                puts += 1;
            }
            puts
        });
        (clocks::thread_time() - before) / puts.max(1)
    }

    /// What each lease has on the heap.
    #[must_use]
    pub fn bytes_each(&self) -> f64 {
        self.heap_bytes as f64 / self.leases.len() as f64
    }
}

async fn acquired(
    count: u32,
    store: &(impl LeaseStore + Clone),
    clock: &Arc<dyn Clock>,
    timing: Timing,
) -> Vec<(LeaseManager, Tenure)> {
    let acquire = (0..count).map(|number| {
        let (store, clock) = (store.clone(), Arc::clone(clock));
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

/// Leases that are held under one session.
pub struct UnderSession {
    runtime: Runtime,
    store: MemoryStore,
    /// Dropped, it ends them all.
    _session: SessionManager,
    leases: Vec<NamedTenure>,
    heap_bytes: i64,
}

impl fmt::Debug for UnderSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderSession").field("leases", &self.leases.len()).finish_non_exhaustive()
    }
}

impl UnderSession {
    /// So many leases, acquired under a session.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let (runtime, store) = (paused(), MemoryStore::new());
        let session = runtime.block_on(async {
            SessionManager::builder(store.clone(), "orders")
                .ephemeral_instance()
                .secret(holder::secret())
                .clock(Arc::new(TokioClock::new()))
                .start()
                .await
                .expect("the store is there")
        });
        let mut leases = Vec::with_capacity(count as usize);
        let counted = allocation_counter::measure(|| {
            leases = runtime.block_on(async {
                let acquire = (0..count).map(|number| {
                    let session = &session;
                    async move { session.acquire(&format!("lease-{number}")).await }
                });
                let leases = join_all(acquire).await;
                tokio::time::sleep(Timing::default().ttl()).await;
                leases.into_iter().map(|it| it.expect("nobody else wants it")).collect()
            });
            // Collected in the room that they had as results.
            leases.shrink_to_fit();
        });
        // What stands in the store is another process's memory, or a disk's.
        let copy = MemoryStore::new();
        let stored = allocation_counter::measure(|| {
            for key in store.keys() {
                if let Some(content) = store.content(&key) {
                    copy.put_by_hand(&key, content.to_vec());
                }
            }
        });
        let heap_bytes = counted.bytes_current - stored.bytes_current;
        Self { runtime, store, _session: session, leases, heap_bytes }
    }

    /// What each lease has on the heap, what stands in the store not included.
    #[must_use]
    pub fn bytes_each(&self) -> f64 {
        self.heap_bytes as f64 / self.leases.len() as f64
    }

    /// Requests to the store in an hour.
    #[must_use]
    pub fn requests_per_hour(&self) -> u64 {
        let before = self.store.requests();
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_secs(3600)).await });
        assert!(self.leases.iter().all(|lease| lease.fence().is_open()), "all are still held");
        self.store.requests().since(before).total()
    }
}

/// A runtime whose time passes when there is nothing to do.
fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs no more than a thread")
}
