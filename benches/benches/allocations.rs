//! A check before every side effect allocates nothing: counted, and a failure if it is not so.
//!
//! A target of its own, since counting needs an allocator of its own, which costs time.

use fencing::{Clock as _, Epoch, FenceControl, FencingGate, SystemClock, TokenSource};
use std::{hint::black_box, process::ExitCode, sync::Arc, time::Duration};

const CHECKS: u64 = 1000;

fn main() -> ExitCode {
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(SystemClock::new()));
    let window = Duration::from_secs(24 * 3600);
    control.open(SystemClock::new().reading(), window).expect("the window is a day");
    let (fence, gate) = (control.fence(), FencingGate::new());

    // A counter that does not count would pass everything.
    let mut is_clean = told("box (for comparison)", allocations(|| Box::new(1_u8)), CHECKS);
    is_clean &= told("fence_check", allocations(|| black_box(&fence).check()), 0);
    is_clean &= told("gate_admit", allocations(|| gate.admit(black_box(Epoch::MIN))), 0);
    let source = TokenSource::new();
    is_clean &= told("source_next", allocations(|| black_box(&source).next()), 0);
    control.shut();
    is_clean &= told("fence_check, shut", allocations(|| black_box(&fence).check()), 0);
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn allocations<T>(call: impl Fn() -> T) -> u64 {
    let checks = || (0..CHECKS).for_each(|_| drop(black_box(call())));
    allocation_counter::measure(checks).count_total
}

fn told(what: &str, counted: u64, expected: u64) -> bool {
    let verdict = if counted == expected { "ok" } else { "NOT as it has to be" };
    println!("{what}: {counted} allocations in {CHECKS} calls, {expected} expected: {verdict}");
    counted == expected
}
