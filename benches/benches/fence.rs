//! What a check before every side effect costs, what a gate at the resource costs, and a token.

use criterion::{Criterion, criterion_group};
use fencing::{Clock as _, Epoch, FenceControl, FencingGate, SystemClock, TokenSource};
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

fn fence(criterion: &mut Criterion) {
    let clock = SystemClock::new();
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock));
    let window = Duration::from_secs(24 * 3600);
    control.open(clock.reading(), window).expect("the window is a day");
    let fence = control.fence();

    let mut group = criterion.benchmark_group("fence");
    group.bench_function("check", |bencher| bencher.iter(|| black_box(&fence).check()));
    #[cfg(target_os = "linux")]
    group.bench_function("two bare clock reads", |bencher| {
        use rustix::time::{ClockId, clock_gettime};
        bencher.iter(|| (clock_gettime(ClockId::Boottime), clock_gettime(ClockId::Realtime)));
    });
    group.finish();
}

fn gate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gate");
    let gate = FencingGate::new();
    group.bench_function("admit", |bencher| bencher.iter(|| gate.admit(black_box(Epoch::MIN))));
    let highest = AtomicU64::new(0);
    group.bench_function("bare fetch_max", |bencher| {
        bencher.iter(|| highest.fetch_max(black_box(1), Ordering::AcqRel));
    });
    group.finish();
}

fn source(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("source");
    let source = TokenSource::new();
    group.bench_function("next", |bencher| bencher.iter(|| black_box(&source).next()));
    let last = AtomicU64::new(0);
    group.bench_function("bare fetch_add", |bencher| {
        bencher.iter(|| last.fetch_add(black_box(1), Ordering::AcqRel));
    });
    #[cfg(target_os = "linux")]
    group.bench_function("bare clock read and fetch_add", |bencher| {
        use rustix::time::{ClockId, clock_gettime};
        bencher.iter(|| {
            let second = clock_gettime(ClockId::Realtime).tv_sec;
            (second, last.fetch_add(black_box(1), Ordering::AcqRel))
        });
    });
    group.finish();
}

criterion_group!(benches, fence, gate, source);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
