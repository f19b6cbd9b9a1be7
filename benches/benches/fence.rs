//! What a check before every side effect costs, what a gate at the resource costs, and a token.

use benches::rows::fence::{open_fence, two_clock_reads};
use criterion::{Criterion, criterion_group};
use fencing::{Epoch, FencingGate, TokenSource};
use rustix::time::{ClockId, clock_gettime};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

fn fence(criterion: &mut Criterion) {
    let (_control, fence) = open_fence();
    let mut group = criterion.benchmark_group("fence");
    group.bench_function("check", |bencher| bencher.iter(|| black_box(&fence).check()));
    group.bench_function("two bare clock reads", |bencher| bencher.iter(two_clock_reads));
    group.bench_function("check, shared with another thread", |bencher| {
        beside(|| _ = black_box(&fence).check(), || bencher.iter(|| black_box(&fence).check()));
    });
    group.bench_function("two bare clock reads, beside another thread", |bencher| {
        let reads = || _ = black_box(two_clock_reads());
        beside(reads, || bencher.iter(two_clock_reads));
    });
    group.finish();
}

/// Runs `act` while another thread does `other` again and again.
fn beside(other: impl Fn() + Sync, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                other();
            }
        });
        act();
        is_over.store(true, Ordering::Relaxed);
    });
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
    group.bench_function("bare clock read and fetch_add", |bencher| {
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
