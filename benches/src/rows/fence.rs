//! A check before every side effect.

use super::{Bar, Effort, Row};
use crate::{clocks, paired};
use fencing::{Clock as _, Epoch, Fence, FenceControl, FencingGate, SystemClock};
use rustix::time::{ClockId, clock_gettime};
use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

const BATCH: u32 = 2_000;
const CHECKED: &str = "`Fence::check` beside the two clock reads that it needs";

/// A fence that stays open; it is shut when its control is dropped.
#[must_use]
pub fn open_fence() -> (FenceControl, Fence) {
    let clock = SystemClock::new();
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock));
    let window = Duration::from_secs(24 * 3600);
    control.open(clock.reading(), window).expect("the window is a day");
    let fence = control.fence();
    (control, fence)
}

/// The two clock reads that a check cannot do without.
#[must_use]
pub fn two_clock_reads() -> i64 {
    clock_gettime(ClockId::Boottime).tv_nsec ^ clock_gettime(ClockId::Realtime).tv_nsec
}

/// On one thread and shared by two, and what it allocates.
#[must_use]
pub fn rows(effort: Effort) -> Vec<Row> {
    let (_control, fence) = open_fence();
    let pairs = effort.of(1_000);
    let check = || paired::times(BATCH, || black_box(&fence).check());
    let alone =
        paired::run_by(clocks::thread_time, pairs, check(), paired::times(BATCH, two_clock_reads));
    let shared = shared(&fence, pairs);
    let gate = FencingGate::new();
    let counted = allocation_counter::measure(|| {
        (0..1_000).for_each(|_| {
            let _ = black_box(&fence).check();
            let _ = gate.admit(black_box(Epoch::MIN));
        });
    });
    vec![
        Row::of("fence-check", &alone, Bar::AtMost(1.15), CHECKED),
        Row::of(
            "fence-check-2-threads",
            &shared,
            Bar::AtMost(1.15),
            "the same fence on two threads",
        ),
        Row::new(
            "fence-check-allocations",
            counted.count_total as f64,
            Bar::Exactly(0.0),
            "allocations in 1000 checks and 1000 `FencingGate::admit`",
            String::new(),
        ),
    ]
}

/// The same while another thread does just what this one does.
fn shared(fence: &Fence, pairs: usize) -> paired::Pairs {
    let turn = Barrier::new(2);
    let run = || {
        let mut check = paired::times(BATCH, || black_box(fence).check());
        let mut read = paired::times(BATCH, two_clock_reads);
        let ours = || {
            turn.wait();
            check();
        };
        let bare = || {
            turn.wait();
            read();
        };
        paired::run_by(clocks::thread_time, pairs, ours, bare)
    };
    thread::scope(|scope| {
        let other = scope.spawn(run);
        let here = run();
        other.join().expect("it only reads clocks");
        here
    })
}
