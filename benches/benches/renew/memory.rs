//! A renewal without a network, a disk, a runtime.

use benches::holder::{Holder, Write, lease_key};
use criterion::Criterion;
use futures_util::FutureExt as _;
use lease_core::{LeaseStore as _, ObjectKey, Version, record::Nonce, testing::MemoryStore};
use std::hint::black_box;

pub(crate) fn renewal(criterion: &mut Criterion) {
    let (store, key) = (MemoryStore::new(), lease_key());
    let mut carry = |it| write(&store, &key, it);
    let mut holder = Holder::active(&mut carry);

    let mut group = criterion.benchmark_group("renew memory");
    group.bench_function("renewal", |bencher| bencher.iter(|| holder.renew(&mut carry)));

    let content = store.content(&key).expect("it was renewed");
    let mut version = store.version(&key).expect("it was renewed");
    group.bench_function("bare replace of the same bytes", |bencher| {
        bencher.iter(|| {
            let (content, replaces) = (content.clone(), Some(version.clone()));
            version = write(&store, &key, Write { content, replaces });
        });
    });

    let told = Version::new("a");
    let mut accept = |it: Write| {
        black_box(it);
        told.clone()
    };
    let mut holder = Holder::active(&mut accept);
    group.bench_function("machine and encode alone", |bencher| {
        bencher.iter(|| holder.renew(&mut accept));
    });
    group
        .bench_function("bare nonce of it, from the system", |bencher| bencher.iter(Nonce::random));
    group.finish();
}

/// It never waits, so that no runtime is measured with it.
fn write(store: &MemoryStore, key: &ObjectKey, Write { content, replaces }: Write) -> Version {
    let written = match &replaces {
        Some(version) => store.replace_if_match(key, content, version).now_or_never(),
        None => store.create_if_absent(key, content).now_or_never(),
    };
    written.expect("it is done at once").expect("nobody else writes")
}
