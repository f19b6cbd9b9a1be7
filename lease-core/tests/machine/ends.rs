//! A tenure ends once, for one reason, also when several come together.

use crate::{
    rig::{Rig, plain},
    sightings::held,
};
use lease_core::{
    machine::{Reply, Role},
    store::StoreErrorKind::Precondition,
};

#[test]
fn case_27_whoever_stops_before_it_acquired_says_nothing() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(3.0).with(|machine, now| machine.stop(now));
    rig.at(30.0).expect(&[]);
    assert_eq!(rig.role(), Role::Stopped);
}

#[test]
fn case_27_the_deadline_and_a_loss_at_one_instant_end_the_tenure_once() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(7.999);
    rig.clock.advance(std::time::Duration::from_millis(1));
    rig.answer(&renewal, Reply::Failed(Precondition));
    rig.at(8.0);
    rig.expect(&["ended e1: Expired"]);
}

#[test]
fn case_27_a_loss_during_the_release_ends_the_tenure_once() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.stop(now));
    let release = rig.fails("release v1 e1 s2", Precondition);
    rig.answer(&release, Reply::Failed(Precondition));
    rig.with(|machine, now| machine.stop(now));
    rig.at(20.0).expect(&["ended e1: Lost"]);
    assert_eq!(rig.role(), Role::Stopped);
}

#[test]
fn case_27_two_tenures_end_twice_in_order() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", Precondition);
    rig.read("read", held("b", 2, 1, "v2"));
    rig.unchanged_until(12.0);
    rig.written("replace v2 e3 s1", "v3");
    rig.at(14.0).fails("replace v3 e3 s2", Precondition);
    rig.read("read", held("c", 4, 1, "v4"));
    rig.expect(&[
        "ended e1: taken over by b e2",
        "taking over e3",
        "active e3",
        "ended e3: taken over by c e4",
    ]);
}

#[test]
fn case_27_an_end_that_no_read_explains_is_told_within_r() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", Precondition);
    rig.expect(&[]);
    rig.at(4.0).expect(&["ended e1: Lost"]);
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", Precondition);
    rig.with(|machine, now| machine.stop(now));
    rig.expect(&["ended e1: Lost"]);
}
