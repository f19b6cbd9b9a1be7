//! A renewal without I/O, and the record that it writes, each beside its floor.

use benches::{holder::Steps, record::Bed};
use criterion::{Criterion, criterion_group};

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("machine");
    let mut steps = Steps::active();
    group.bench_function("step", |bencher| bencher.iter(|| steps.renew()));
    group.finish();
}

fn record(criterion: &mut Criterion) {
    let bed = Bed::new();
    let floor = bed.floor();
    let mut group = criterion.benchmark_group("record");
    group.bench_function("encode and MAC", |bencher| bencher.iter(|| bed.encode()));
    group.bench_function("encode", |bencher| bencher.iter(|| bed.encode_alone()));
    group.bench_function("bare serde_json", |bencher| bencher.iter(|| floor.serialize()));
    group.bench_function("bare HMAC", |bencher| bencher.iter(|| floor.mac()));
    group.bench_function("decode and verify", |bencher| bencher.iter(|| bed.judge()));
    group.bench_function("decode", |bencher| bencher.iter(|| bed.decode()));
    group.bench_function("bare serde_json, read", |bencher| bencher.iter(|| floor.deserialize()));
    group.finish();
}

criterion_group!(benches, step, record);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
