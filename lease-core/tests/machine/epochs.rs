//! Epochs: above everything that is known, and never below the clock (protocol, 5).

use crate::{
    rig::{Rig, but, plain},
    sightings::{held, judged, nth},
};
use lease_core::{
    auth::Verdict,
    machine::{Action, Config, EpochOrigin, Event, Past, Request, Role, Sighting, WaitReason},
    store::StoreErrorKind,
};

fn with_floor() -> Config {
    but(|it| it.has_floor = true)
}

fn tell_floor(rig: &mut Rig, floor: Result<Option<u64>, StoreErrorKind>) {
    let id = rig.floors.remove(0);
    rig.with(|machine, now| machine.handle_floor(id, floor.map(|floor| floor.map(nth)), now));
}

#[test]
fn case_32_the_next_epoch_is_above_history_and_snapshots() {
    let mut past = Past::default();
    past.last_epoch = Some(nth(12));
    let mut rig = Rig::new(with_floor(), past);
    rig.read("read", Sighting::Missing);
    assert!(rig.waiting().is_empty(), "the floor is not told yet");
    tell_floor(&mut rig, Ok(Some(15)));
    rig.take("create e16 s1");
}

#[test]
fn case_32_with_nothing_anywhere_the_counter_starts_at_one_and_the_clock_at_its_own() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    rig.take("create e1 s1");

    let config = but(|it| it.epochs = EpochOrigin::Clock);
    let mut rig = Rig::new(config.clone(), Past::default());
    rig.read("read", Sighting::Missing);
    let second = 1_767_225_600_u64;
    let floor = second << 21;
    // What is held back has an epoch of two seconds later: an unseen one may be of this very second.
    rig.take(&format!("create e{} s1", (second + 2) << 21));
    // A clock that is behind decides nothing: above what is known in any case.
    let mut past = Past::default();
    past.last_epoch = Some(nth(floor + 5));
    let mut rig = Rig::new(config, past);
    rig.clock.jump_wall(-3600);
    rig.read("read", Sighting::Missing);
    rig.take(&format!("create e{} s1", floor + 6));
}

#[test]
fn case_32_without_a_floor_told_nothing_is_acquired() {
    let mut rig = Rig::new(with_floor(), Past::default());
    rig.read("read", Sighting::Missing);
    tell_floor(&mut rig, Err(StoreErrorKind::Unavailable));
    let now = fencing::Clock::reading(&rig.clock);
    assert_eq!(rig.machine.waiting(now).map(|it| it.reason), Some(WaitReason::EpochFloor));
    rig.unchanged_until(1.999);
    assert!(rig.floors.is_empty());
    rig.at(2.0);
    assert_eq!(rig.floors.len(), 1, "asked again after R");
    rig.read("read", Sighting::Missing);
    rig.at(60.0);
    assert!(rig.waiting().iter().all(|it| it == "read"), "{:?}", rig.waiting());
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn the_floor_is_asked_before_the_takeover_is_due() {
    let mut rig = Rig::watching(with_floor(), 7);
    assert_eq!(rig.floors.len(), 1);
    rig.unchanged_until(5.0);
    tell_floor(&mut rig, Ok(Some(9)));
    rig.unchanged_until(10.0);
    rig.take("replace v1 e10 s1");
}

#[test]
fn the_floor_is_asked_again_after_a_change_of_epoch_or_a_deletion() {
    let mut rig = Rig::watching(with_floor(), 7);
    let late = rig.floors[0];
    tell_floor(&mut rig, Ok(None));
    rig.at(2.0).read("read unless v1", held("b", 7, 2, "v2"));
    assert!(rig.floors.is_empty(), "the same epoch proves no more");
    rig.at(4.0).read("read unless v2", held("c", 9, 1, "v3"));
    tell_floor(&mut rig, Ok(None));
    rig.at(6.0).read("read unless v3", Sighting::Missing);
    assert!(rig.waiting().is_empty());
    // An answer to an earlier question does not count.
    rig.with(|machine, now| machine.handle_floor(late, Ok(Some(nth(3))), now));
    assert!(rig.waiting().is_empty());
    tell_floor(&mut rig, Ok(Some(20)));
    rig.take("create e21 s1");
}

#[test]
fn the_floor_is_asked_again_when_a_version_came_back() {
    // Unseen for more than 2R.
    let mut rig = Rig::watching(with_floor(), 7);
    tell_floor(&mut rig, Ok(None));
    rig.at(8.5);
    let read = rig.waiting().remove(0);
    rig.read(&read, Sighting::NotModified);
    tell_floor(&mut rig, Ok(Some(20)));
    // A takeover of it was refused.
    rig.unchanged_until(18.5);
    rig.fails("replace v1 e21 s1", StoreErrorKind::Precondition);
    rig.read("read unless v1", Sighting::NotModified);
    assert_eq!(rig.floors.len(), 1);
}

#[test]
fn the_own_last_epoch_counts_also_after_the_record_has_gone() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", StoreErrorKind::Precondition);
    rig.read("read", Sighting::Missing);
    rig.expect(&["ended e1: Deleted"]);
    rig.take("create e2 s1");
}

#[test]
fn an_acquisition_in_doubt_below_an_epoch_seen_since_is_not_adopted() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    let create = rig.fails("create e1 s1", StoreErrorKind::InDoubt);
    // Another holds it, it is deleted by hand, and only now the create lands.
    rig.at(0.2).read("read", held("b", 5, 1, "v5"));
    rig.at(2.2).read("read unless v5", create.landed("v1"));
    rig.expect(&[]);
    assert_eq!(rig.role(), Role::Standby);
    rig.unchanged_until(12.2);
    rig.take("replace v1 e6 s1");
}

#[test]
fn case_48_the_number_in_what_cannot_be_believed_does_not_count() {
    for epoch in [u64::MAX, 1 << 60] {
        let mut rig = Rig::standby();
        rig.read("read", judged(held("b", epoch, 1, "v1"), Verdict::Forged));
        rig.unchanged_until(10.0);
        rig.take("replace v1 e1 s1");
    }
}

#[test]
fn a_poll_that_is_due_goes_out_although_no_epoch_is_left() {
    let mut rig = Rig::watching(plain(), u64::MAX);
    rig.unchanged_until(9.9);
    // Takeover and poll are due at the same moment.
    rig.clock.advance_to(rig.time(10.0));
    let now = fencing::Clock::reading(&rig.clock);
    let action = rig.machine.poll_action(now, &mut crate::world::Counting::from(99));
    assert!(matches!(action, Some(Action::Send(_, Request::Read { .. }))), "{action:?}");
}

#[test]
fn epochs_end_with_an_error_and_never_wrap() {
    let mut rig = Rig::watching(plain(), u64::MAX);
    rig.unchanged_until(10.0);
    rig.expect(&["exhausted"]);
    assert_eq!(rig.role(), Role::Standby);
    // It is looked at again after T: an operator may have replaced the record.
    rig.unchanged_until(19.9);
    rig.expect(&[]);
    rig.unchanged_until(20.0);
    rig.expect(&["exhausted"]);
    assert!(rig.events.contains(&Event::EpochsExhausted));

    let mut rig = Rig::watching(plain(), u64::MAX - 1);
    rig.unchanged_until(10.0);
    rig.take(&format!("replace v1 e{} s1", u64::MAX));
}

/// The floor that was told before the takeover can be too low by the time of it: a holder that this
/// instance never saw may still have opened its fence meanwhile.
#[test]
fn the_floor_is_asked_once_more_before_the_fence_opens() {
    let mut rig = Rig::watching(with_floor(), 7);
    tell_floor(&mut rig, Ok(Some(7)));
    rig.unchanged_until(10.0);
    let taken = rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8"]);
    // It cannot be told: the fence stays shut, and it is asked again after R.
    tell_floor(&mut rig, Err(StoreErrorKind::Unavailable));
    rig.at(11.9);
    assert!(!rig.is_open() && rig.floors.is_empty());
    rig.undisturbed_until(12.0);
    // Somebody opened epoch 8: under this number nothing may be written. The lease is one's own, so
    // it is taken again at once, under a larger one.
    tell_floor(&mut rig, Ok(Some(8)));
    rig.expect(&["ended e8: Abandoned(EpochFloor)"]);
    rig.read("read", taken.landed("v2"));
    tell_floor(&mut rig, Ok(Some(8)));
    rig.written("replace v2 e9 s1", "v3");
    rig.expect(&["taking over e9"]);
    tell_floor(&mut rig, Ok(Some(8)));
    rig.expect(&["active e9"]);
    assert!(rig.is_open());
}

#[test]
fn what_is_held_back_asks_the_floor_when_the_hold_back_is_over() {
    let mut rig = Rig::new(with_floor(), Past::default());
    rig.read("read", Sighting::Missing);
    tell_floor(&mut rig, Ok(None));
    rig.written("create e1 s1", "v1");
    rig.undisturbed_until(9.9);
    assert!(rig.floors.is_empty() && !rig.is_open());
    rig.undisturbed_until(10.0);
    assert!(!rig.is_open());
    tell_floor(&mut rig, Ok(None));
    assert!(rig.is_open());
}
