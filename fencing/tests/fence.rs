//! The fence: half-open, latching, one tenure, both clocks.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use fencing::{
    Clock, Epoch, Fence, FenceControl, FenceShut, MonotonicTime, Reading, ShutReason, WallTime,
    testing::ManualClock,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const WINDOW: Duration = Duration::from_secs(8);
const TICK: Duration = Duration::from_nanos(1);

fn opened() -> (ManualClock, FenceControl, Reading) {
    let clock = ManualClock::new();
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
    let sent = clock.reading();
    control.open(sent, WINDOW).unwrap();
    (clock, control, sent)
}

fn reason(result: Result<(), FenceShut>) -> ShutReason {
    result.unwrap_err().reason
}

#[test]
fn it_is_shut_until_it_is_opened() {
    let control = FenceControl::new(Epoch::MIN, Arc::new(ManualClock::new()));
    assert_eq!(reason(control.fence().check()), ShutReason::NotOpen);
    assert_eq!(control.fence().remaining(), Duration::ZERO);
}

#[test]
fn at_the_deadline_itself_it_is_shut() {
    let (clock, control, _) = opened();
    clock.advance(WINDOW - TICK);
    assert_eq!(control.fence().remaining(), TICK);
    control.fence().check().unwrap();
    clock.advance(TICK);
    assert_eq!(reason(control.fence().check()), ShutReason::Expired);
}

#[test]
fn once_found_past_it_stays_shut_whatever_the_clock_shows_then() {
    let (clock, mut control, _) = opened();
    clock.jump_wall(8);
    assert_eq!(reason(control.fence().check()), ShutReason::Suspended);
    clock.jump_wall(-3600);
    assert_eq!(reason(control.fence().check()), ShutReason::Suspended);
    assert_eq!(reason(control.extend(clock.reading(), WINDOW)), ShutReason::Suspended);
}

#[test]
fn the_owner_cannot_extend_a_deadline_that_has_passed_even_if_nobody_looked() {
    let (clock, mut control, _) = opened();
    clock.advance(WINDOW);
    assert_eq!(reason(control.extend(clock.reading(), WINDOW)), ShutReason::Expired);
    assert!(!control.fence().is_open());
}

#[test]
fn it_opens_once_in_its_life() {
    let (clock, mut control, _) = opened();
    control.shut();
    assert_eq!(reason(control.open(clock.reading(), WINDOW)), ShutReason::Closed);

    let (clock, mut control, _) = opened();
    assert!(control.open(clock.reading(), WINDOW).is_err(), "a second opening is a fault");
    assert!(!control.fence().is_open());
}

#[test]
fn it_does_not_open_on_a_window_that_has_passed() {
    let clock = ManualClock::new();
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
    let sent = clock.reading();
    clock.advance(WINDOW);
    assert_eq!(reason(control.open(sent, WINDOW)), ShutReason::Expired);
    assert_eq!(reason(control.open(clock.reading(), WINDOW)), ShutReason::Expired);
}

#[test]
fn an_extension_counts_from_when_the_renewal_was_sent_and_never_shortens() {
    let (clock, mut control, first) = opened();
    clock.advance(Duration::from_secs(2));
    let second = clock.reading();
    clock.advance(Duration::from_secs(3));
    control.extend(second, WINDOW).unwrap();
    assert_eq!(control.fence().remaining(), Duration::from_secs(5));
    control.extend(first, WINDOW).unwrap();
    assert_eq!(control.fence().remaining(), Duration::from_secs(5));
    // Past the first window, by both clocks.
    clock.advance(Duration::from_secs(4));
    control.fence().check().unwrap();
}

/// A clock that lets somebody else act in the middle of one reading: after the time was taken,
/// before it is handed to whoever asked.
#[derive(Debug)]
struct Interrupted {
    clock: ManualClock,
    next: Mutex<Option<Interruption>>,
}

#[derive(Debug)]
struct Interruption {
    fence: Fence,
    advance: Duration,
}

impl Clock for Interrupted {
    fn monotonic(&self) -> MonotonicTime {
        self.reading().monotonic
    }

    fn wall(&self) -> WallTime {
        self.reading().wall
    }

    fn reading(&self) -> Reading {
        let taken = self.clock.reading();
        let interruption = self.next.lock().unwrap().take();
        if let Some(Interruption { fence, advance }) = interruption {
            self.clock.advance(advance);
            assert!(fence.check().is_err());
        }
        taken
    }
}

/// The owner looks right before the deadline, is paused, and somebody else finds the fence past it:
/// that latches, and the owner's extension comes too late.
#[test]
fn an_extension_loses_against_a_check_that_found_it_past() {
    let clock = ManualClock::new();
    let interrupted = Arc::new(Interrupted { clock: clock.clone(), next: Mutex::new(None) });
    let mut control = FenceControl::new(Epoch::MIN, interrupted.clone());
    control.open(clock.reading(), WINDOW).unwrap();
    clock.advance(WINDOW - TICK);
    let sent = clock.reading();
    let fence = control.fence();
    *interrupted.next.lock().unwrap() = Some(Interruption { fence: fence.clone(), advance: TICK });
    assert_eq!(reason(control.extend(sent, WINDOW)), ShutReason::Expired);
    assert_eq!(reason(fence.check()), ShutReason::Expired);
}

#[test]
fn case_25_a_suspend_is_seen_by_the_first_check() {
    // The suspend-aware clock counts the hour.
    let (clock, control, _) = opened();
    clock.advance(Duration::from_secs(3600));
    assert_eq!(reason(control.fence().check()), ShutReason::Expired);

    // The monotonic clock stands still; the wall clock tells.
    let (clock, control, _) = opened();
    clock.suspend(Duration::from_secs(3600), Duration::from_secs(1));
    assert_eq!(reason(control.fence().check()), ShutReason::Suspended);
}

#[test]
fn a_wall_clock_set_back_neither_shortens_nor_lengthens() {
    let (clock, mut control, _) = opened();
    clock.jump_wall(-10_800);
    clock.advance(Duration::from_secs(2));
    let sent = clock.reading();
    control.extend(sent, WINDOW).unwrap();
    assert_eq!(control.fence().remaining(), WINDOW);
    clock.advance(WINDOW - TICK);
    control.fence().check().unwrap();
    clock.advance(TICK);
    assert_eq!(reason(control.fence().check()), ShutReason::Expired);
}

#[test]
fn dropping_the_owner_shuts_every_clone() {
    let (_, control, _) = opened();
    let clones = [control.fence(), control.fence().clone()];
    drop(control);
    for fence in clones {
        assert_eq!(reason(fence.check()), ShutReason::Closed);
    }
}

#[test]
fn the_epoch_never_changes_and_an_error_names_it() {
    let epoch = Epoch::new(7).unwrap();
    let control = FenceControl::new(epoch, Arc::new(ManualClock::new()));
    assert_eq!(control.fence().epoch(), epoch);
    let error = control.fence().check().unwrap_err();
    assert_eq!(error.epoch, epoch);
    assert!(error.to_string().contains("epoch 7"), "{error}");
}

#[test]
fn times_next_to_the_marks_are_times() {
    let origin =
        Reading { monotonic: MonotonicTime::from_nanos(0), ..ManualClock::new().reading() };
    let clock = ManualClock::starting_at(origin);
    let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
    control.open(clock.reading(), TICK).unwrap();
    control.fence().check().unwrap();
}

/// Whoever sees the fence shut must never see it open again, whatever its owner does meanwhile.
#[test]
fn no_thread_sees_it_open_after_another_saw_it_shut() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for round in 0..200 {
        let clock = ManualClock::new();
        let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
        control.open(clock.reading(), Duration::from_micros(50)).unwrap();
        let (fence, shut) = (control.fence(), AtomicBool::new(false));
        // Set once the owner has stopped extending and the last deadline has passed.
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200 {
                    clock.advance(Duration::from_micros(1));
                    // It fails once a check found the fence past its deadline.
                    let _ = control.extend(clock.reading(), Duration::from_micros(2));
                    clock.advance(Duration::from_micros(u64::from(round % 3 == 0)));
                }
                clock.advance(Duration::from_secs(1));
                over.store(true, Ordering::SeqCst);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let (is_over, known_shut) =
                            (over.load(Ordering::SeqCst), shut.load(Ordering::SeqCst));
                        if fence.check().is_err() {
                            shut.store(true, Ordering::SeqCst);
                        } else {
                            assert!(!known_shut, "open again in round {round}");
                            assert!(!is_over, "never shut in round {round}");
                        }
                        if is_over {
                            break;
                        }
                    }
                });
            }
        });
    }
}

/// The wall clock was set forward between a renewal and one that was sent at the same monotonic time.
#[test]
fn an_extension_to_the_same_deadline_moves_no_limit() {
    let (clock, mut control, sent) = opened();
    let later_on_the_wall = Reading { wall: sent.wall + WINDOW, ..sent };
    control.extend(later_on_the_wall, WINDOW).unwrap();
    clock.jump_wall(8);
    assert_eq!(reason(control.fence().check()), ShutReason::Suspended);
}
