//! Wishes: refused, tried, watched; and bounds.

use crate::{
    parts::{LOST, Link, Stored, config, key, secs},
    world::{World, live, live_with},
};
use lease_core::{
    auth::Verdict,
    machine::Protocol,
    session::{Config, DenyReason, Event, LeaseEndReason, NamedSeen, Object, WishError},
};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

fn denied(world: &World<Protocol>, node: usize) -> Vec<DenyReason> {
    let denied = world.nodes[node].events.iter().filter_map(|event| match event {
        Event::Denied { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    denied.collect()
}

fn seen(world: &World<Protocol>, node: usize) -> Vec<NamedSeen> {
    let seen = world.nodes[node].events.iter().filter_map(|event| match event {
        Event::Seen { seen, .. } => Some(seen.clone()),
        _ => None,
    });
    seen.collect()
}

fn try_acquire(world: &mut World<Protocol>, node: usize, lease: &str) -> Result<(), WishError> {
    world.with(node, |machine, now| machine.try_acquire(key(lease), now)).unwrap()
}

#[test]
fn what_is_held_or_wanted_already_is_refused_and_nothing_changes() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    let epoch = world.nodes[0].machine.held(&key("x")).unwrap();
    let error = world.with(0, |machine, now| machine.acquire(key("x"), now)).unwrap();
    assert_eq!(error, Err(WishError::AlreadyHeld { lease: key("x"), epoch }));
    world.acquire(1, "x");
    let error = try_acquire(&mut world, 1, "x");
    assert_eq!(error, Err(WishError::AlreadyWanted { lease: key("x") }));
    let error = world.with(1, |machine, now| machine.release(&key("x"), now)).unwrap();
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "lease x is not released: this session does not hold it (any more)");
    world.run(20.0).unwrap();
    assert!(world.holds(0, "x"));
}

#[test]
fn a_session_past_its_deadline_tries_nothing_and_one_that_was_stopped_wants_nothing() {
    let mut world = live::<Protocol>(&["a"]);
    world.cut_off(0);
    // No timer fires between the deadline and the wish.
    world.nodes[0].is_paused = true;
    world.run(9.0).unwrap();
    let error = try_acquire(&mut world, 0, "x");
    assert_eq!(error, Err(WishError::NotLive { lease: key("x") }));
    world.nodes[0].is_paused = false;
    world.acquire(0, "x");
    world.reconnect(0);
    world.run_until(3.0, |world| world.holds(0, "x")).unwrap();
    world.with(0, |machine, now| machine.stop(now)).unwrap();
    let error = world.with(0, |machine, now| machine.acquire(key("y"), now)).unwrap();
    assert_eq!(error, Err(WishError::Stopped { lease: key("y") }));
}

#[test]
fn a_hundred_thousand_wishes_wait_in_a_bounded_table_and_one_more_is_refused() {
    let mut world = live::<Protocol>(&["a"]);
    let now = |world: &World<Protocol>| {
        use fencing::Clock as _;
        world.nodes[0].clock.reading()
    };
    let at = now(&world);
    for number in 0..100_000 {
        world.nodes[0].machine.acquire(key(&format!("x{number}")), at).unwrap();
    }
    let error = world.with(0, |machine, now| machine.acquire(key("one-more"), now)).unwrap();
    let full = WishError::Full { lease: key("one-more"), max: 100_000 };
    assert_eq!(error, Err(full));
    assert_eq!(world.nodes[0].machine.in_flight(), 32);
    world.run(0.1).unwrap();
    assert!(world.nodes[0].machine.all_held().count() > 32);
    assert_eq!(world.most_in_flight, 32);
}

#[test]
fn no_bound_of_requests_is_so_small_that_nothing_goes() {
    let mut world = live_with::<Protocol>(&["a"], |name| {
        let mut config = config(name);
        (config.max_in_flight, config.looks_per_renew) = (0, 0);
        config
    });
    for lease in ["x", "y"] {
        world.acquire(0, lease);
    }
    world.run_until(1.0, |world| world.holds(0, "x") && world.holds(0, "y")).unwrap();
    assert_eq!(world.most_in_flight, 1);
}

#[test]
fn an_audit_more_often_than_the_session_is_renewed_is_refused() {
    let error = config("a").with_audit(secs(1.9)).unwrap_err().to_string();
    assert!(error.starts_with("an audit every 1.9s is refused"), "{error}");
}

#[test]
fn a_try_says_at_once_who_holds_it_and_takes_what_is_free() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    try_acquire(&mut world, 1, "x").unwrap();
    world.run(0.1).unwrap();
    let holder = world.nodes[0].name.clone();
    assert_eq!(denied(&world, 1), [DenyReason::Held { holder }]);
    // Nothing of it is left.
    assert_eq!(
        (world.nodes[1].machine.leases(), world.nodes[1].machine.sessions_watched()),
        (0, 0)
    );
    world.release(0, "x");
    world.run(0.1).unwrap();
    try_acquire(&mut world, 0, "x").unwrap();
    assert_eq!(denied(&world, 0), [DenyReason::KeptOut]);
    try_acquire(&mut world, 1, "x").unwrap();
    world.run(0.1).unwrap();
    assert!(world.holds(1, "x"));
}

#[test]
fn a_try_does_not_wait_for_garbage_or_for_a_store_that_fails() {
    let mut world = live::<Protocol>(&["a"]);
    world.store.objects.insert(Object::Lease(key("x")), Stored::Garbage(1));
    try_acquire(&mut world, 0, "x").unwrap();
    world.run(0.1).unwrap();
    assert_eq!(denied(&world, 0), [DenyReason::Untrusted { verdict: Verdict::Unreadable }]);
    world.cut_off(0);
    try_acquire(&mut world, 0, "y").unwrap();
    world.run(1.1).unwrap();
    assert!(matches!(denied(&world, 0)[1], DenyReason::Store(_)));
}

#[test]
fn garbage_is_waited_out() {
    let mut world = live::<Protocol>(&["a"]);
    world.store.objects.insert(Object::Lease(key("x")), Stored::Garbage(1));
    world.acquire(0, "x");
    world.run(9.9).unwrap();
    assert!(!world.holds(0, "x"));
    world.run(0.3).unwrap();
    assert!(world.holds(0, "x"));
}

#[test]
fn a_name_that_is_watched_is_told_of_without_being_asked_for() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.with(1, |machine, now| machine.watch(key("x"), now)).unwrap().unwrap();
    world.run(1.0).unwrap();
    assert_eq!(seen(&world, 1), [NamedSeen::Missing]);
    world.take(0, "x", 1.0).unwrap();
    world.run(2.1).unwrap();
    let (holder, epoch) =
        (world.nodes[0].name.clone(), world.nodes[0].machine.held(&key("x")).unwrap());
    let held = NamedSeen::Held { holder: holder.clone(), epoch };
    assert_eq!(seen(&world, 1)[1..], [held]);
    world.cut_off(0);
    world.run(13.0).unwrap();
    assert_eq!(seen(&world, 1)[2..], [NamedSeen::Orphaned { holder, epoch }]);
    // It did not kill.
    let session = world.session(0);
    assert!(world.store.get_session(&session).unwrap().lease.holder.is_some());
    world.with(1, |machine, now| machine.unwatch(&key("x"), now)).unwrap();
    assert_eq!(world.nodes[1].machine.leases(), 0);
}

#[test]
fn an_audit_tells_what_became_of_the_lease_and_costs_one_read_per_a() {
    let mut world =
        live_with::<Protocol>(&["a"], |name| config(name).with_audit(secs(4.0)).unwrap());
    let lease = Object::Lease(key("x"));
    world.take(0, "x", 20.0).unwrap();
    world.run(1.0).unwrap();
    // The hold-back is over, and the object says so.
    assert!(!world.store.get_lease(&lease).unwrap().held_back);
    world.store.served.clear();
    world.run(60.0).unwrap();
    let reads = world.store.served.iter().filter(|it| it.object == lease).count();
    assert!((15..=16).contains(&reads), "{reads} reads in 15 A");
    world.store.objects.insert(lease, Stored::Garbage(7));
    world.run(4.1).unwrap();
    let ended = world.nodes[0].events.iter().rev().find_map(|event| match event {
        Event::Ended { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let replaced = LeaseEndReason::Replaced { by: None, verdict: Some(Verdict::Unreadable) };
    assert_eq!(ended, Some(replaced));
}

/// The holder's clock is 8 % slow, the creator's 8 % fast; W alone would be too little.
#[test]
fn the_hold_back_of_a_long_audit_covers_clock_rates() {
    let mut world =
        live_with::<Protocol>(&["a", "b"], |name| config(name).with_audit(secs(98.0)).unwrap());
    world.tick = secs(0.02);
    world.take(0, "x", 130.0).unwrap();
    world.nodes[0].clock.set_rate(920_000);
    world.nodes[1].clock.set_rate(1_080_000);
    let lease = Object::Lease(key("x"));
    world.run(1.0).unwrap();
    // From here on it cannot be read; its session is renewed as ever.
    let blind = lease.clone();
    world.route(0, move |object, _| if *object == blind { LOST } else { Link::default() });
    world.store.objects.remove(&lease);
    world.take(1, "x", 150.0).unwrap();
}

/// One write each after the holder's end, and until then one read per R of each object.
#[test]
fn many_waiters_cost_one_read_per_r_and_one_write_each() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = live_with::<Protocol>(&names, |name| {
        let mut config: Config = config(name);
        config.jitter_seed = Some(u64::from_str_radix(&name[1..], 16).unwrap());
        config
    });
    world.tick = secs(0.02);
    world.take(0, "x", 1.0).unwrap();
    for node in 1..100 {
        world.acquire(node, "x");
    }
    world.run(3.0).unwrap();
    world.store.served.clear();
    world.run(40.0).unwrap();
    let mut reads = BTreeMap::new();
    let own: Vec<_> = (0..100).map(|node| world.session(node)).collect();
    for it in world.store.served.iter().filter(|it| it.object != own[it.node]) {
        assert!(!it.is_write);
        *reads.entry((it.node, it.object.clone())).or_insert(0) += 1;
    }
    assert!(reads.values().all(|reads| (19..=20).contains(reads)), "{reads:?}");
    world.cut_off(0);
    world.store.served.clear();
    world.run(15.0).unwrap();
    let holders = (1..100).filter(|node| world.holds(*node, "x")).count();
    assert_eq!(holders, 1);
    let writes = |object: &Object, node: usize| {
        let served = world.store.served.iter();
        served.filter(|it| it.object == *object && it.node == node && it.is_write).count()
    };
    for node in 1..100 {
        assert!(writes(&Object::Lease(key("x")), node) <= 1);
        assert!(writes(&own[0], node) <= 1);
    }
}

#[test]
fn it_can_be_kept_by_a_model_checker() {
    let mut world = live::<Protocol>(&["a", "b"]);
    world.take(0, "x", 1.0).unwrap();
    world.acquire(1, "x");
    world.run(3.0).unwrap();
    for node in &world.nodes {
        let copy = node.machine.clone();
        assert!(copy == node.machine);
        let hash = |machine: &lease_core::session::SessionMachine| {
            let mut hasher = DefaultHasher::new();
            machine.hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&copy), hash(&node.machine));
    }
}
