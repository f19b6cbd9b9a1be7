//! Wall clocks decide nothing about others, and the machine's answers depend on nothing else than
//! what goes in (protocol, 1).

use crate::{
    rig::{Rig, but, plain},
    sightings::{found, held, nth, secs},
    world::id,
};
use fencing::testing::ManualClock;
use lease_core::{
    auth::Verdict,
    machine::{Event, Facts, Past, Reply, Role, Sighting},
    store::{
        StoreErrorKind::{InDoubt, Precondition, Unavailable},
        Version,
    },
};

const HOURS_3: i64 = 3 * 3600;

/// What happens to a standby and then to the active it becomes; `jump` may move its wall clock at
/// each of four moments.
fn story(jump: impl Fn(&ManualClock, usize)) -> Vec<(Event, Vec<(String, f64)>)> {
    let mut rig = Rig::watching(plain(), 7);
    let clock = rig.clock.clone();
    let mut trace = Vec::new();
    let mut told = 0;
    let mut note = |rig: &Rig| {
        for event in &rig.events[told..] {
            trace.push((event.clone(), rig.waiting_since()));
        }
        told = rig.events.len();
    };
    jump(&clock, 0);
    rig.unchanged_until(9.0);
    jump(&clock, 1);
    rig.unchanged_until(10.0);
    rig.written("replace v1 e8 s1", "v2");
    note(&rig);
    jump(&clock, 2);
    rig.at(12.0).fails("replace v2 e8 s2", InDoubt);
    rig.at(12.2).written("replace v2 e8 s3", "v3");
    note(&rig);
    jump(&clock, 3);
    rig.at(14.2).fails("replace v3 e8 s4", Unavailable);
    rig.at(14.4).fails("replace v3 e8 s5", Precondition);
    rig.read("read", held("b", 9, 1, "v4"));
    note(&rig);
    rig.unchanged_until(24.4);
    rig.take("replace v4 e10 s1");
    note(&rig);
    trace
}

#[test]
fn case_29_a_wall_clock_that_is_off_changes_nothing() {
    let right = story(|_, _| ());
    assert!(right.len() > 5);
    for seconds in [-HOURS_3, HOURS_3] {
        let off = |clock: &ManualClock, moment| {
            if moment == 0 {
                clock.jump_wall(seconds);
            }
        };
        assert!(story(off) == right, "off by {seconds} s");
    }
}

#[test]
fn case_29_a_wall_clock_that_jumps_changes_nothing_for_a_standby_or_when_set_back() {
    let right = story(|_, _| ());
    let jumps: [(usize, i64); 6] =
        [(0, HOURS_3), (1, HOURS_3), (0, -HOURS_3), (1, -HOURS_3), (2, -HOURS_3), (3, -HOURS_3)];
    for (at, seconds) in jumps {
        let jumping = |clock: &ManualClock, moment| {
            if moment == at {
                clock.jump_wall(seconds);
            }
        };
        assert!(story(jumping) == right, "{seconds} s at moment {at}");
    }
}

#[test]
fn a_wall_clock_set_forward_past_the_window_ends_the_tenure() {
    let mut rig = Rig::active();
    rig.at(1.0).clock.jump_wall(7);
    assert!(!rig.is_open(), "8 s since the last renewal was sent, as far as it shows");
    rig.with(|machine, now| machine.handle_timeout(now));
    rig.expect(&["ended e1: Suspended"]);
    let mut rig = Rig::active();
    rig.at(1.0).clock.jump_wall(6);
    rig.with(|machine, now| machine.handle_timeout(now));
    assert!(rig.is_open());
    rig.expect(&[]);
}

#[test]
fn a_late_call_lets_first_happen_what_should_have_happened() {
    // A standby that did not run: its acquisition is in doubt before its late answer is looked at.
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.take("replace v1 e8 s1");
    rig.clock.advance(secs(300));
    rig.answer(&acquisition, Reply::Written(Version::new("v2")));
    rig.expect(&[]);
    rig.read("read unless v1", acquisition.landed("v2"));
    assert_eq!(rig.role(), Role::Standby, "it is long over");
    rig.unchanged_until(319.9);
    rig.expect(&[]);
    rig.unchanged_until(320.0);
    rig.take("replace v2 e9 s1");
}

#[test]
fn nothing_grows_without_bound() {
    // A lease that changes hands, epochs, ttls and versions all the time, and a store that fails.
    let mut rig = Rig::new(but(|it| it.has_history = true), Past::default());
    let mut largest = 0;
    for turn in 1..2_000_u64 {
        for request in rig.waiting() {
            if request.starts_with("read") {
                let ttl = secs(1 + turn * 7 % 50);
                let facts = Facts::new(Some(id("b")), nth(turn), turn, None, ttl);
                rig.read(&request, found(facts, Verdict::Unsigned, &format!("v{turn}")));
            }
        }
        rig.at(2.0 * turn as f64);
        largest = largest.max(format!("{:?}", rig.machine).len());
    }
    assert!(largest < 6_000, "{largest} bytes to print it");
    // Doubt after doubt.
    let mut rig = Rig::watching(plain(), 7);
    let mut largest = 0;
    for turn in 0..4_000 {
        for request in rig.waiting() {
            match request.starts_with("read") {
                true => rig.read(&request, Sighting::NotModified),
                false => drop(rig.fails(&request, InDoubt)),
            }
        }
        rig.at(0.2 * f64::from(turn));
        largest = largest.max(format!("{:?}", rig.machine).len());
    }
    assert!(largest < 30_000, "{largest} bytes to print it");
}

#[test]
fn an_acquisition_that_is_answered_after_a_suspend_is_over_at_once() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.take("replace v1 e8 s1");
    rig.clock.suspend(secs(3600), secs(1));
    rig.answer(&acquisition, Reply::Written(Version::new("v2")));
    rig.expect(&["taking over e8", "ended e8: Suspended"]);
    assert!(!rig.is_open());
    assert_eq!(rig.waiting(), ["read"]);
}
