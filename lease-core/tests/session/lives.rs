//! From when a new life of a session begins, and what becomes of what was written under the last.

use crate::{
    parts::{Fate, Link, Stored, UNANSWERED, config, key, secs},
    world::{World, live},
};
use lease_core::{
    machine::{EndReason, Protocol},
    session::{Event, LeaseEndReason, Object, Request, SessionState},
    store::StoreErrorKind,
};
use std::sync::Arc;

fn life_within(world: &mut World<Protocol>, node: usize, least: f64, most: f64) {
    let from = world.time;
    world.run_until(most, |world| world.is_live(node)).unwrap();
    assert!(world.time - from >= secs(least), "live already after {:?}", world.time - from);
}

#[test]
fn the_first_life_of_an_instance_that_was_drawn_just_now_begins_at_once() {
    let mut world = World::<Protocol>::new();
    world.add(config("a"));
    life_within(&mut world, 0, 0.0, 0.05);
}

#[test]
fn without_knowing_that_it_is_new_it_is_held_back() {
    let mut world = World::<Protocol>::new();
    let mut config = config("a");
    config.fresh_instance = false;
    world.add(config);
    life_within(&mut world, 0, 10.0, 10.1);
    let session = world.session(0);
    world.run(2.5).unwrap();
    let state = world.store.get_session(&session).map(|facts| facts.state);
    assert_eq!(state, Some(SessionState::Live));
}

#[test]
fn over_a_life_that_this_process_ended_a_new_one_begins_at_once() {
    let mut world = live::<Protocol>(&["a"]);
    let first = world.nodes[0].machine.life().unwrap();
    world.cut_off(0);
    world.run(9.0).unwrap();
    assert!(!world.is_live(0));
    world.reconnect(0);
    // The next read, R/10 after the last that failed.
    life_within(&mut world, 0, 0.0, 1.3);
    assert!(world.nodes[0].machine.life().unwrap().epoch > first.epoch);
}

#[test]
fn over_a_session_of_its_own_that_was_deleted_a_new_life_is_held_back() {
    let mut world = live::<Protocol>(&["a"]);
    let session = world.session(0);
    world.store.objects.remove(&session);
    world.run_until(3.0, |world| !world.is_live(0)).unwrap();
    // A copy of the directory may have begun a life since that nobody here has seen.
    life_within(&mut world, 0, 9.9, 10.2);
}

#[test]
fn over_a_life_of_an_earlier_process_a_new_one_waits_for_w() {
    let mut world = live::<Protocol>(&["a"]);
    world.restart(0);
    life_within(&mut world, 0, 10.0, 12.1);
}

#[test]
fn over_a_tombstone_a_new_life_waits_for_w() {
    let mut world = live::<Protocol>(&["a"]);
    let session = world.session(0);
    let mut tombstone = world.store.get_session(&session).unwrap().clone();
    tombstone.state = SessionState::Tombstone;
    tombstone.lease.holder = None;
    world.store.objects.insert(session.clone(), Stored::Session(Arc::new(tombstone)));
    world.run_until(3.0, |world| !world.is_live(0)).unwrap();
    life_within(&mut world, 0, 10.0, 12.1);
}

#[test]
fn over_a_kill_a_new_life_begins_at_once_also_in_another_process() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    world.cut_off(0);
    world.take(1, "x", 15.0).unwrap();
    world.reconnect(0);
    world.restart(0);
    life_within(&mut world, 0, 0.0, 0.1);
}

/// It is free as soon as it lands: it names a life that is over.
#[test]
fn a_write_that_lands_after_its_session_s_end_names_a_dead_life() {
    let mut world = live::<Protocol>(&["a", "b"]);
    let late = Link { out: secs(20.0), back: secs(0.0), fate: Fate::Unanswered };
    world.route(0, move |object, request| match (object, request) {
        (Object::Lease(_), Request::Create(_) | Request::Replace(..)) => late,
        _ => Link::default(),
    });
    world.acquire(0, "x");
    world.run(0.5).unwrap();
    world.with(0, |machine, now| machine.stop(now)).unwrap();
    let lease = Object::Lease(key("x"));
    world.run_until(21.0, |world| world.store.objects.contains_key(&lease)).unwrap();
    assert!(world.store.get_lease(&lease).unwrap().lease.holder.is_some());
    world.take(1, "x", 0.1).unwrap();
}

/// Its answer is lost, so that it is in doubt; a second write decides.
#[test]
fn an_acquisition_in_doubt_is_made_certain_by_another_write() {
    let mut world = live::<Protocol>(&["a", "b"]);
    let mut writes = 0;
    world.route(0, move |object, request| match (object, request) {
        (Object::Lease(_), Request::Create(_) | Request::Replace(..)) => {
            writes += 1;
            if writes == 1 { UNANSWERED } else { Link::default() }
        }
        _ => Link::default(),
    });
    world.acquire(0, "x");
    world.run(0.1).unwrap();
    let first = world.store.get_lease(&Object::Lease(key("x"))).unwrap().lease.epoch;
    world.acquire(1, "x");
    world.run(3.0).unwrap();
    assert!(world.holds(0, "x"));
    assert!(world.nodes[0].machine.held(&key("x")).unwrap() > first);
    world.run(20.0).unwrap();
    assert!(!world.holds(1, "x"));
}

/// With the session it is given back after all.
#[test]
fn a_store_that_refuses_a_release_ends_the_session() {
    let mut world = live::<Protocol>(&["a", "b"]);
    for lease in ["x", "y"] {
        world.take(0, lease, 1.0).unwrap();
    }
    world.acquire(1, "x");
    world.run(1.0).unwrap();
    let refused = Fate::Told(StoreErrorKind::Unsupported);
    world.route(0, move |object, request| match (object, request) {
        (Object::Lease(_), Request::Replace(..)) => Link { fate: refused, ..Link::default() },
        _ => Link::default(),
    });
    world.release(0, "x");
    world.run_until(3.0, |world| world.holds(1, "x")).unwrap();
    assert!(!world.holds(0, "y"));
}

/// What can neither be taken nor given back ends with the session.
#[test]
fn what_was_given_up_and_cannot_be_followed_ends_the_session() {
    let mut world = live::<Protocol>(&["a"]);
    let first = world.nodes[0].machine.life();
    let mut writes = 0;
    world.route(0, move |object, request| match (object, request) {
        (Object::Lease(_), Request::Create(_) | Request::Replace(..)) => {
            writes += 1;
            let refused = Fate::Told(StoreErrorKind::Unsupported);
            let fate = if writes == 1 { Fate::Lost } else { refused };
            Link { fate, ..Link::default() }
        }
        _ => Link::default(),
    });
    world.acquire(0, "x");
    world.run(1.0).unwrap();
    world.give_up(0, "x");
    world.run(2.0).unwrap();
    assert_ne!(world.nodes[0].machine.life(), first);
    assert_eq!(world.nodes[0].machine.leases(), 0);
}

#[test]
fn whatever_was_held_ends_once_with_the_reason_of_its_session() {
    let mut world = live::<Protocol>(&["a", "b"]);
    for lease in ["x", "y", "z"] {
        world.take(0, lease, 1.0).unwrap();
    }
    world.cut_off(0);
    world.release(0, "z");
    world.run(9.0).unwrap();
    let ended = world.nodes[0].events.iter().filter_map(|event| match event {
        Event::Ended { lease, reason, .. } => Some((lease.as_str(), reason.clone())),
        _ => None,
    });
    let ended: Vec<_> = ended.collect();
    let expired = || LeaseEndReason::Session(EndReason::Expired);
    // The release of z never arrived.
    assert_eq!(ended, [("x", expired()), ("y", expired()), ("z", expired())]);
    assert_eq!(world.nodes[0].machine.leases(), 0);
    world.acquire(1, "x");
    world.run_until(15.0, |world| world.holds(1, "x")).unwrap();
}

/// A tenure that was given up in doubt under one life is over with that life; nothing of it is left.
#[test]
fn the_next_life_takes_what_the_last_one_held() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    world.cut_off(0);
    world.run(9.0).unwrap();
    world.reconnect(0);
    world.run_until(3.0, |world| world.is_live(0)).unwrap();
    world.take(0, "x", 0.1).unwrap();
    world.acquire(1, "x");
    world.run(25.0).unwrap();
    assert!(world.holds(0, "x"));
}
