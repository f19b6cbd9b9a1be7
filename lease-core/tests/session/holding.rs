//! Acquiring, holding, releasing and taking over, where nothing goes wrong beyond what must.

use crate::{
    parts::{key, secs},
    world::{World, live},
};
use lease_core::{
    machine::{EndReason, Protocol},
    session::{Event, LeaseEndReason, Object},
};

fn ended(world: &World<Protocol>, node: usize) -> Vec<LeaseEndReason> {
    let ended = world.nodes[node].events.iter().filter_map(|event| match event {
        Event::Ended { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    ended.collect()
}

fn held(world: &World<Protocol>, node: usize) -> usize {
    world.nodes[node].machine.all_held().count()
}

#[test]
fn a_free_lease_costs_one_read_and_one_write() {
    let mut world = live::<Protocol>(&["a"]);
    world.store.served.clear();
    world.take(0, "x", 1.0).unwrap();
    let lease = Object::Lease(key("x"));
    let asked = world.store.served.iter().filter(|it| it.object == lease);
    assert_eq!(asked.map(|it| it.is_write).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn what_is_held_costs_nothing_beyond_the_session() {
    let mut world = live::<Protocol>(&["a"]);
    for number in 0..300 {
        world.acquire(0, &format!("x{number}"));
    }
    world.run_until(10.0, |world| held(world, 0) == 300).unwrap();
    assert_eq!(world.most_in_flight, 32);
    world.store.served.clear();
    world.run(100.0).unwrap();
    let session = world.session(0);
    assert!(world.store.served.iter().all(|it| it.object == session && it.is_write));
    let renewals = world.store.served.len();
    assert!((49..=51).contains(&renewals), "{renewals}");
}

#[test]
fn a_release_hands_over_and_its_holder_keeps_out() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    world.acquire(1, "x");
    world.run(7.0).unwrap();
    assert!(world.holds(0, "x"));
    world.release(0, "x");
    assert!(!world.holds(0, "x"));
    world.acquire(0, "x");
    world.run_until(2.1, |world| world.holds(1, "x")).unwrap();
    assert_eq!(ended(&world, 0), [LeaseEndReason::Released]);
    world.run(20.0).unwrap();
    assert!(world.holds(1, "x"));
}

#[test]
fn a_dead_session_is_killed_once_and_all_its_leases_are_taken() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.tick = secs(0.02);
    for number in 0..1_000 {
        world.acquire(0, &format!("x{number}"));
    }
    world.run(4.0).unwrap();
    assert_eq!(held(&world, 0), 1_000);
    for number in 0..1_000 {
        world.acquire(1, &format!("x{number}"));
    }
    world.run(7.0).unwrap();
    world.nodes[0].is_paused = true;
    world.store.served.clear();
    let died = world.time;
    world.run_until(14.0, |world| held(world, 1) == 1_000).unwrap();
    // T + R, and 1 000 writes of 40 ms, 32 at once.
    assert!(world.time - died < secs(12.0 + 1.4), "{:?}", world.time - died);
    println!("all taken {:?} after the last sign of life", world.time - died);
    let session = world.session(0);
    let kills = world.store.served.iter().filter(|it| it.object == session && it.is_write);
    assert_eq!(kills.count(), 1);
    // Back again, it finds itself killed and begins a new life at once.
    world.nodes[0].is_paused = false;
    world.run(1.0).unwrap();
    assert!(world.is_live(0));
    assert_eq!(ended(&world, 0), vec![LeaseEndReason::Session(EndReason::Suspended); 1_000]);
}

#[test]
fn a_stop_releases_the_session_and_all_of_its_leases_with_one_write() {
    let mut world = live::<Protocol>(&["a", "b"]);
    for number in 0..50 {
        world.acquire(0, &format!("x{number}"));
    }
    world.run(2.0).unwrap();
    for number in 0..50 {
        world.acquire(1, &format!("x{number}"));
    }
    world.run(3.0).unwrap();
    world.store.served.clear();
    world.with(0, |machine, now| machine.stop(now)).unwrap();
    world.run_until(3.0, |world| held(world, 1) == 50).unwrap();
    assert_eq!(world.store.served.iter().filter(|it| it.node == 0).count(), 1);
    let released = LeaseEndReason::Session(EndReason::Released);
    assert_eq!(ended(&world, 0), vec![released; 50]);
}
