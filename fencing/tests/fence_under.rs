//! Fences under another fence: one extension above extends them all.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use fencing::{
    Clock, Epoch, Fence, FenceControl, MonotonicTime, ShutReason, WallTime, testing::ManualClock,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

/// A session that is open for 8 s, and a lease under it.
fn session_and_lease(clock: &ManualClock) -> (FenceControl, FenceControl) {
    let mut session = FenceControl::new(epoch(1), Arc::new(clock.clone()));
    session.open(clock.reading(), secs(8)).unwrap();
    let mut lease = FenceControl::under(&session.fence(), epoch(7));
    lease.open(clock.reading(), Duration::MAX).unwrap();
    (session, lease)
}

fn shut_because(fence: &Fence) -> (Epoch, ShutReason) {
    let shut = fence.check().unwrap_err();
    (shut.epoch, shut.reason)
}

#[test]
fn extending_the_one_above_extends_all_under_it() {
    let clock = ManualClock::new();
    let (mut session, _lease) = session_and_lease(&clock);
    let leases: Vec<FenceControl> = (10..1_010)
        .map(|number| {
            let mut lease = FenceControl::under(&session.fence(), epoch(number));
            lease.open(clock.reading(), Duration::MAX).unwrap();
            lease
        })
        .collect();
    clock.advance(secs(5));
    session.extend(clock.reading(), secs(8)).unwrap();
    clock.advance(secs(7));
    assert!(leases.iter().all(|lease| lease.fence().is_open()));
    assert_eq!(leases[0].fence().remaining(), secs(1));
    clock.advance(secs(1));
    assert!(leases.iter().all(|lease| !lease.fence().is_open()));
}

#[test]
fn it_is_shut_with_the_one_above_at_once_and_for_the_same_reason() {
    let clock = ManualClock::new();
    let (mut session, lease) = session_and_lease(&clock);
    let fence = lease.fence();
    session.shut();
    assert_eq!(shut_because(&fence), (epoch(7), ShutReason::Closed));
    assert!(format!("{fence:?}").contains("shut: Closed"), "it is latched itself: {fence:?}");

    let (_session, lease) = session_and_lease(&clock);
    clock.advance(secs(8));
    assert_eq!(shut_because(&lease.fence()), (epoch(7), ShutReason::Expired));

    let (_session, lease) = session_and_lease(&clock);
    clock.jump_wall(8);
    assert_eq!(shut_because(&lease.fence()), (epoch(7), ShutReason::Suspended));

    let (session, lease) = session_and_lease(&clock);
    drop(session);
    assert_eq!(shut_because(&lease.fence()), (epoch(7), ShutReason::Closed));
}

#[test]
fn its_own_latch_shuts_it_alone() {
    let clock = ManualClock::new();
    let (session, mut lease) = session_and_lease(&clock);
    let fence = lease.fence();
    lease.shut();
    assert_eq!(shut_because(&fence), (epoch(7), ShutReason::Closed));
    assert!(session.fence().is_open());
    lease.open(clock.reading(), secs(5)).unwrap_err();
    lease.extend(clock.reading(), secs(5)).unwrap_err();
    assert!(!fence.is_open());
}

#[test]
fn its_own_deadline_counts_by_both_clocks() {
    let clock = ManualClock::new();
    let (session, _) = session_and_lease(&clock);
    let mut lease = FenceControl::under(&session.fence(), epoch(9));
    lease.open(clock.reading(), secs(3)).unwrap();
    assert_eq!(lease.fence().remaining(), secs(3));
    clock.advance(secs(2));
    lease.extend(clock.reading(), secs(3)).unwrap();
    clock.advance(secs(3));
    assert_eq!(shut_because(&lease.fence()), (epoch(9), ShutReason::Expired));

    let mut lease = FenceControl::under(&session.fence(), epoch(10));
    lease.open(clock.reading(), secs(2)).unwrap();
    clock.jump_wall(2);
    assert_eq!(shut_because(&lease.fence()), (epoch(10), ShutReason::Suspended));
    assert!(session.fence().is_open());
}

/// What was found shut stays shut: also a set-back clock above changes nothing.
#[test]
fn once_found_shut_it_stays_shut() {
    let clock = ManualClock::new();
    let (session, lease) = session_and_lease(&clock);
    clock.jump_wall(8);
    assert!(!lease.fence().is_open());
    clock.jump_wall(-8);
    assert!(!lease.fence().is_open());
    assert!(!session.fence().is_open());
}

#[test]
fn under_one_that_is_not_open_yet_it_waits() {
    let clock = ManualClock::new();
    let mut session = FenceControl::new(epoch(1), Arc::new(clock.clone()));
    let mut lease = FenceControl::under(&session.fence(), epoch(7));
    lease.open(clock.reading(), Duration::MAX).unwrap_err();
    assert_eq!(shut_because(&lease.fence()), (epoch(7), ShutReason::NotOpen));
    session.open(clock.reading(), secs(8)).unwrap();
    lease.fence().check().unwrap();
}

#[test]
fn fences_stand_under_fences_under_fences() {
    let clock = ManualClock::new();
    let (mut session, lease) = session_and_lease(&clock);
    let mut part = FenceControl::under(&lease.fence(), epoch(8));
    part.open(clock.reading(), secs(20)).unwrap();
    assert_eq!(part.fence().remaining(), secs(8));
    session.shut();
    assert_eq!(shut_because(&part.fence()), (epoch(8), ShutReason::Closed));
}

#[derive(Debug)]
struct Counted(ManualClock, Arc<AtomicUsize>);

impl Clock for Counted {
    fn monotonic(&self) -> MonotonicTime {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.monotonic()
    }

    fn wall(&self) -> WallTime {
        self.0.wall()
    }
}

#[test]
fn both_clocks_are_read_once_whatever_stands_above() {
    let (clock, reads) = (ManualClock::new(), Arc::new(AtomicUsize::new(0)));
    let counted = Counted(clock.clone(), reads.clone());
    let mut session = FenceControl::new(epoch(1), Arc::new(counted));
    session.open(clock.reading(), secs(8)).unwrap();
    let mut lease = FenceControl::under(&session.fence(), epoch(7));
    lease.open(clock.reading(), Duration::MAX).unwrap();
    let fence = lease.fence();
    let before = reads.load(Ordering::Relaxed);
    fence.check().unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), before + 1);
}
