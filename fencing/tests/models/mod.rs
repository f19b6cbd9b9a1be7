//! What is explored. Time is a number that a thread of the model moves.

use fencing::{Clock, Epoch, FenceControl, MonotonicTime, Reading, ShutReason, WallTime};
use loom::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::*},
    thread,
};
use std::{sync::Arc, time::Duration};

pub(crate) const ALL: &[super::Model] = &[
    ("what_was_seen_shut_is_never_seen_open", what_was_seen_shut_is_never_seen_open),
    ("a_shut_races_an_extension", a_shut_races_an_extension),
    ("opening_races_a_check", opening_races_a_check),
    ("a_check_that_passes_saw_a_deadline_ahead", a_check_that_passes_saw_a_deadline_ahead),
    ("a_fence_under_another_shuts_with_it", a_fence_under_another_shuts_with_it),
    ("a_new_deadline_comes_with_its_wall_limit", a_new_deadline_comes_with_its_wall_limit),
];

/// A clock that the model moves.
#[derive(Debug)]
struct Moved {
    monotonic: AtomicU64,
    wall: AtomicU64,
}

impl Moved {
    fn at(now: u64) -> Arc<Self> {
        Arc::new(Self { monotonic: AtomicU64::new(now), wall: AtomicU64::new(now) })
    }
}

impl Clock for Moved {
    fn monotonic(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(self.monotonic.load(SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix_nanos(self.wall.load(SeqCst))
    }
}

fn sent(at: u64) -> Reading {
    Reading { monotonic: MonotonicTime::from_nanos(at), wall: WallTime::from_unix_nanos(at) }
}

const WINDOW: Duration = Duration::from_nanos(100);

fn open_at(now: u64) -> (Arc<Moved>, FenceControl) {
    let clock = Moved::at(now);
    let mut control = FenceControl::new(Epoch::MIN, clock.clone());
    control.open(sent(now), WINDOW).expect("it was never open");
    (clock, control)
}

/// The deadline passes while one thread extends it and another looks. Whoever learns that somebody saw
/// it shut, sees it shut.
fn what_was_seen_shut_is_never_seen_open() {
    loom::model(|| {
        let (clock, mut control) = open_at(1_000);
        let fence = control.fence();
        let was_shut = Arc::new(AtomicBool::new(false));
        let looks = {
            let (fence, was_shut, clock) = (fence.clone(), was_shut.clone(), clock.clone());
            thread::spawn(move || {
                clock.monotonic.store(1_100, SeqCst);
                if fence.check().is_err() {
                    was_shut.store(true, Release);
                }
            })
        };
        let extended = control.extend(sent(1_050), WINDOW);
        let was_shut = was_shut.load(Acquire);
        let passes = fence.check().is_ok();
        assert!(!(was_shut && passes), "seen shut, then open");
        looks.join().expect("it does not panic");
        assert_eq!(extended.is_ok(), fence.is_open(), "an extension holds, or never was");
    });
}

/// Of a shut and an extension neither undoes the other: in the end it is shut.
fn a_shut_races_an_extension() {
    loom::model(|| {
        let (clock, mut control) = open_at(1_000);
        let fence = control.fence();
        let looks = {
            let (fence, clock) = (fence.clone(), clock.clone());
            thread::spawn(move || {
                clock.monotonic.store(1_060, SeqCst);
                let first = fence.check();
                let second = fence.check();
                assert!(!(first.is_err() && second.is_ok()), "shut, then open again");
            })
        };
        // Nothing has passed: the extension cannot fail.
        control.extend(sent(1_050), WINDOW).expect("its deadline is ahead");
        drop(control);
        assert_eq!(fence.check().map_err(|shut| shut.reason), Err(ShutReason::Closed));
        looks.join().expect("it does not panic");
    });
}

/// A check beside the opening sees it not open yet, or open; never shut for good.
fn opening_races_a_check() {
    loom::model(|| {
        let clock = Moved::at(1_000);
        let mut control = FenceControl::new(Epoch::MIN, clock);
        let fence = control.fence();
        let looks = thread::spawn(move || {
            let first = fence.check().map_err(|shut| shut.reason);
            let second = fence.check().map_err(|shut| shut.reason);
            let is_fine = |seen| matches!(seen, Ok(()) | Err(ShutReason::NotOpen));
            assert!(is_fine(first) && is_fine(second), "{first:?}, then {second:?}");
            assert!(!(first.is_ok() && second.is_err()), "open, then not");
        });
        control.open(sent(1_000), WINDOW).expect("its deadline is ahead");
        looks.join().expect("it does not panic");
    });
}

/// While time passes the deadline, a check passes only if the clock, read before it, was short of a
/// deadline that was set.
fn a_check_that_passes_saw_a_deadline_ahead() {
    loom::model(|| {
        let (clock, mut control) = open_at(1_000);
        let fence = control.fence();
        let moves = {
            let clock = clock.clone();
            thread::spawn(move || clock.monotonic.store(1_120, SeqCst))
        };
        let looks = {
            let (clock, fence) = (clock.clone(), fence.clone());
            thread::spawn(move || {
                let before = clock.monotonic.load(SeqCst);
                (before, fence.check().is_ok())
            })
        };
        let extended = control.extend(sent(1_050), WINDOW).is_ok();
        let (before, passed) = looks.join().expect("it does not panic");
        let deadline = if extended { 1_150 } else { 1_100 };
        assert!(!passed || before < deadline, "open at {before}, its deadline was {deadline}");
        moves.join().expect("it does not panic");
        assert_eq!(fence.is_open(), extended, "at 1120 only what was extended is open");
    });
}

/// The wall clock jumps beyond the limit of the first window, not of the second: whoever sees the second
/// deadline sees its limit too.
fn a_new_deadline_comes_with_its_wall_limit() {
    loom::model(|| {
        let (clock, mut control) = open_at(1_000);
        let fence = control.fence();
        let looks = {
            let (clock, fence) = (clock.clone(), fence.clone());
            thread::spawn(move || {
                clock.wall.store(1_120, SeqCst);
                fence.check().is_ok()
            })
        };
        let extended = control.extend(sent(1_050), WINDOW).is_ok();
        let passed = looks.join().expect("it does not panic");
        assert_eq!(extended, passed, "an extension that holds is seen whole, or it came too late");
        assert_eq!(extended, fence.is_open());
    });
}

/// The fence above shuts while one under it is extended and looked at: whoever knows of the shut sees
/// both shut, and what was seen shut stays so.
fn a_fence_under_another_shuts_with_it() {
    loom::model(|| {
        let (_clock, mut above) = open_at(1_000);
        let mut control = FenceControl::under(&above.fence(), Epoch::MIN);
        control.open(sent(1_000), WINDOW).expect("its deadline is ahead");
        let fence = control.fence();
        let is_shut = Arc::new(AtomicBool::new(false));
        let shuts = {
            let is_shut = is_shut.clone();
            thread::spawn(move || {
                above.shut();
                is_shut.store(true, Release);
            })
        };
        let extended = control.extend(sent(1_050), WINDOW);
        let was_shut = is_shut.load(Acquire);
        let first = fence.check();
        assert!(!(was_shut && first.is_ok()), "open under a fence that is shut");
        assert!(!(extended.is_err() && first.is_ok()), "shut, then open again");
        shuts.join().expect("it does not panic");
        assert!(!fence.is_open(), "open under a fence that is shut");
    });
}
