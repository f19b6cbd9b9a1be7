//! A renewal through the runner, in processor time: waiting costs nothing, what is waited with does.

use benches::{clocks::thread_time, holder::secret};
use criterion::Criterion;
use lease_core::{
    LeaseManager, Timing,
    testing::{MemoryStore, TokioClock},
};
use std::{sync::Arc, time::Duration};

pub(crate) fn renewal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("renew runner, processor time");
    for (name, ttl, renew) in [("R = 1 s", 5, 1), ("R = 10 s, the default", 30, 10)] {
        let timing = Timing::new(Duration::from_secs(ttl), Duration::from_secs(renew));
        let timing = timing.expect("it is in range");
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|renewals| processor_time(timing, renewals));
        });
    }
    group.finish();
}

/// The runtime's time is paused: it jumps to the next timer whenever there is nothing to do.
fn processor_time(timing: Timing, renewals: u64) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs no more than a thread");
    runtime.block_on(async {
        let store = MemoryStore::new();
        let lease = LeaseManager::builder(store.clone(), "orders")
            .timing(timing)
            .ephemeral_instance()
            .secret(secret())
            .clock(Arc::new(TokioClock::new()))
            .start()
            .await
            .expect("the store is there");
        let tenure = lease.acquire().await.expect("nobody else wants it");

        let (before, started) = (store.requests(), thread_time());
        // Timers are a little late, so that fewer renewals fit than the plain quotient.
        let whole = u32::try_from(renewals).unwrap_or(u32::MAX - 1) + 1;
        tokio::time::sleep(timing.renew() * whole).await;
        let spent = thread_time().saturating_sub(started);
        let done = store.requests().since(before).replaces;
        assert!(done > 0 && tenure.fence().is_open(), "it did not renew");
        spent.mul_f64(renewals as f64 / done as f64)
    })
}
