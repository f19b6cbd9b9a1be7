//! What one renewal costs without a network or a disk: the floor for every driver.

use bytes::Bytes;
use criterion::{Criterion, criterion_group};
use futures_util::FutureExt as _;
use lease_core::{LeaseStore as _, ObjectKey, testing::MemoryStore};

/// About as long as a lease record.
const RECORD_BYTES: usize = 400;

fn replace(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("memory store");
    for (name, store) in [
        ("replace, digests", MemoryStore::new()),
        ("replace, counted", MemoryStore::with_counted_versions()),
    ] {
        let key = ObjectKey::new("orders/lease.json").expect("it is a key");
        let mut version = store.put_by_hand(&key, vec![b' '; RECORD_BYTES]);
        let mut seq = 0_u64;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                seq += 1;
                let content = Bytes::from(format!("{seq:RECORD_BYTES$}"));
                let write = store.replace_if_match(&key, content, &version);
                // It never waits, so that no runtime is measured with it.
                version = write.now_or_never().expect("it is done").expect("nobody else writes");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replace);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
