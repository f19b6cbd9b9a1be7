//! Each rule of section 9 holds in a schedule that needs it, and the same schedule shows the fault once
//! the rule is taken out.

use crate::{
    parts::{Fate, LOST, Link, Stored, UNANSWERED, config, key, secs},
    world::{World, live, live_with},
};
use lease_core::{
    machine::{Protocol, Rules},
    session::{Config, Object, Request, SessionRules, SessionState},
    store::StoreErrorKind,
};
use std::sync::Arc;

/// The schedule passes with all rules, and fails without this one. `shared`: leases of their own have
/// the same rule.
macro_rules! rule {
    ($test:ident, $switch:ident, $schedule:ident) => {
        rule!(@ $test, $switch, $schedule, {}, { const $switch: bool = false; });
    };
    ($test:ident, shared $switch:ident, $schedule:ident) => {
        rule!(@ $test, $switch, $schedule, { const $switch: bool = false; }, {});
    };
    (@ $test:ident, $switch:ident, $schedule:ident, {$($shared:tt)*}, {$($own:tt)*}) => {
        #[test]
        fn $test() {
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
            struct Without;
            impl Rules for Without { $($shared)* }
            impl SessionRules for Without { $($own)* }
            $schedule::<Protocol>().unwrap();
            let fault =
                $schedule::<Without>().expect_err("the rule was taken out and nobody noticed");
            println!("without {}: {fault}", stringify!($switch));
        }
    };
}

rule!(only_a_later_life_frees, ONLY_A_LATER_LIFE_FREES, an_earlier_life_is_put_back);
rule!(a_held_back_life_frees_nothing, HELD_BACK_LIFE_FREES_NOTHING, a_life_over_a_deleted_one);
rule!(a_tombstone_frees_nothing, TOMBSTONE_FREES_NOTHING, a_session_is_deleted);
rule!(a_tombstone_of_an_earlier_life_frees_nothing, TOMBSTONE_FREES_NOTHING, an_old_tombstone);
rule!(a_forged_kill_frees_nothing, UNACCEPTABLE_SESSION_FREES_NOTHING, a_kill_is_forged);
rule!(a_missing_session_gets_a_tombstone, MISSING_SESSION_GETS_A_TOMBSTONE, a_session_is_deleted);
rule!(a_session_is_watched_for_w, SESSION_IS_WATCHED_FOR_W, a_holder_is_cut_off);
rule!(a_session_is_killed_before_its_leases_are_taken, KILL_BEFORE_TAKE, a_clock_beyond_the_margin);
rule!(a_tenure_begins_with_a_write, TENURE_NEEDS_A_WRITE, wanted_again_while_its_release_is_slow);
rule!(a_release_is_repeated_until_it_is_certain, RELEASE_IS_REPEATED, a_release_gets_lost);
rule!(what_was_given_up_is_followed, GIVEN_UP_IS_FOLLOWED, given_up_before_it_lands);
rule!(what_was_given_up_and_landed_is_released, GIVEN_UP_IS_FOLLOWED, given_up_after_it_landed);
rule!(what_was_met_and_given_up_is_released, GIVEN_UP_IS_FOLLOWED, given_up_while_taken_anew);
rule!(whoever_released_keeps_out, KEEPS_OUT_AFTER_RELEASE, wanted_again_at_once);
rule!(an_audit_shuts_the_fence, AUDIT_SHUTS_THE_FENCE, deleted_from_under_a_blind_holder);
rule!(with_audit_a_missing_lease_is_held_back, AUDIT_HOLDS_BACK, deleted_from_under_a_holder);
rule!(with_audit_garbage_is_held_back, AUDIT_HOLDS_BACK, garbage_over_a_holder);
rule!(a_hold_back_is_handed_on, HOLD_BACK_IS_HANDED_ON, the_creator_of_a_deleted_lease_stops);
rule!(leases_end_with_their_session, LEASES_END_WITH_THE_SESSION, a_holder_is_cut_off);
rule!(
    what_is_held_back_is_not_released,
    shared HELD_BACK_IS_NEVER_RELEASED,
    the_creator_of_a_deleted_lease_releases_it
);
rule!(a_blind_gap_restarts_the_wait, shared BLIND_GAP_RESTARTS, an_old_version_comes_back);
rule!(epochs_grow_after_a_deletion, shared CLOCK_IS_A_FLOOR, deleted_and_created_within_a_second);
rule!(epochs_are_above_what_was_seen, shared EPOCH_IS_ABOVE_WHAT_WAS_SEEN, counted_epochs);

/// `a` holds x, and `b` wants it since a while.
fn holder_and_waiter<R: SessionRules>() -> Result<World<R>, String> {
    with_config(config)
}

fn with_config<R: SessionRules>(config: impl Fn(&str) -> Config) -> Result<World<R>, String> {
    let mut world = live_with::<R>(&["a", "b"], config);
    // With audit a lease that nobody ever held is held back at first.
    world.take(0, "x", 60.0)?;
    world.run(2.0)?;
    world.acquire(1, "x");
    world.run(5.0)?;
    Ok(world)
}

fn audited(name: &str, every: f64) -> Config {
    config(name).with_audit(secs(every)).unwrap()
}

fn gets<R: SessionRules>(world: &mut World<R>, node: usize, most: f64) -> Result<(), String> {
    world.run_until(most, |world| world.holds(node, "x"))
}

const X: &str = "x";

fn x() -> Object {
    Object::Lease(key(X))
}

fn is_write(request: &Request) -> bool {
    !matches!(request, Request::Read { .. })
}

/// An earlier life of the holder's session is put back while the holder is cut off.
fn an_earlier_life_is_put_back<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b"]);
    let session = world.session(0);
    let earlier = world.store.objects[&session].clone();
    world.cut_off(0);
    world.run(9.0)?;
    world.reconnect(0);
    world.run(1.0)?;
    world.take(0, X, 1.0)?;
    world.cut_off(0);
    world.store.objects.insert(session, earlier);
    world.acquire(1, X);
    gets(&mut world, 1, 13.0)
}

/// The session of a holder that is cut off is deleted, and another process of that instance (a copy of
/// its directory) begins a life in its place, held back.
fn a_life_over_a_deleted_one<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.cut_off(0);
    let session = world.session(0);
    world.store.objects.remove(&session);
    let mut copy = config("a");
    copy.fresh_instance = false;
    world.add(copy);
    world.run(0.1)?;
    let state = world.store.get_session(&session).map(|facts| facts.state);
    if state != Some(SessionState::HeldBack) {
        return Err(format!("{state:?}"));
    }
    gets(&mut world, 1, 15.0)
}

/// The session of a holder that is cut off is deleted.
fn a_session_is_deleted<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.cut_off(0);
    let session = world.session(0);
    world.store.objects.remove(&session);
    gets(&mut world, 1, 14.0)
}

/// A tombstone of an earlier life is put back over the session of a holder that is cut off.
fn an_old_tombstone<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b"]);
    let session = world.session(0);
    let mut tombstone = world.store.get_session(&session).cloned().ok_or("no session")?;
    tombstone.state = SessionState::Tombstone;
    tombstone.lease.holder = None;
    world.cut_off(0);
    world.run(9.0)?;
    world.reconnect(0);
    world.run(1.0)?;
    world.take(0, X, 1.0)?;
    world.cut_off(0);
    world.store.objects.insert(session, Stored::Session(Arc::new(tombstone)));
    world.acquire(1, X);
    gets(&mut world, 1, 13.0)
}

/// A kill that nobody who knows the secret wrote stands in place of the session of a holder that is
/// cut off.
fn a_kill_is_forged<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    let session = world.session(0);
    let mut kill = world.store.get_session(&session).cloned().ok_or("no session")?;
    kill.state = SessionState::Killed;
    kill.lease.holder = None;
    world.cut_off(0);
    world.store.objects.insert(session, Stored::Forged(Arc::new(kill)));
    gets(&mut world, 1, 14.0)
}

/// A holder is cut off.
fn a_holder_is_cut_off<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.cut_off(0);
    gets(&mut world, 1, 14.0)
}

/// The holder's clock runs at a seventh of true time: its renewals come too late, and its fence is
/// open for a minute. No wait helps against that; but its next renewal finds the kill.
fn a_clock_beyond_the_margin<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.tolerates_overlaps = true;
    world.nodes[0].clock.set_rate(140_000);
    gets(&mut world, 1, 20.0)?;
    world.run(6.0)?;
    match (world.holds(0, X), world.holds(1, X)) {
        (false, true) => Ok(()),
        both => Err(format!("who holds it at {:?}: {both:?}", world.time)),
    }
}

/// A release is on its way for 1.5 s, and its sender wants the lease again meanwhile.
fn wanted_again_while_its_release_is_slow<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    let slow = Link { out: secs(1.5), ..Link::default() };
    world.route(0, move |object, request| match object == &x() && is_write(request) {
        true => slow,
        false => Link::default(),
    });
    world.release(0, X);
    world.reconnect(0);
    world.acquire(0, X);
    world.run(1.0)?;
    gets(&mut world, 1, 5.0)?;
    world.run(10.0)
}

/// The first release never arrives.
fn a_release_gets_lost<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.route(0, |object, _| if object == &x() { LOST } else { Link::default() });
    world.release(0, X);
    world.run(0.1)?;
    world.reconnect(0);
    gets(&mut world, 1, 30.0)
}

/// An acquisition is given up while it is on its way; it lands a second after it is past its budget.
fn given_up_before_it_lands<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b"]);
    let slow = Link { out: secs(3.0), back: secs(0.0), fate: Fate::Unanswered };
    world.route(0, move |object, request| match object == &x() && is_write(request) {
        true => slow,
        false => Link::default(),
    });
    world.acquire(0, X);
    world.run(1.0)?;
    world.give_up(0, X);
    world.reconnect(0);
    world.run(4.0)?;
    world.acquire(1, X);
    gets(&mut world, 1, 20.0)
}

/// An acquisition lands, its answer is lost, and then it is given up.
fn given_up_after_it_landed<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b"]);
    world.route(0, |object, request| match object == &x() && is_write(request) {
        true => UNANSWERED,
        false => Link::default(),
    });
    world.acquire(0, X);
    world.run(1.0)?;
    world.give_up(0, X);
    world.reconnect(0);
    world.acquire(1, X);
    gets(&mut world, 1, 20.0)
}

/// An acquisition lands, its answer is lost, and a read meets it. Before a write of its own can begin the
/// tenure, since the store refuses every one, the lease is given up.
fn given_up_while_taken_anew<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b"]);
    let mut is_first = true;
    let refused = Link { fate: Fate::Told(StoreErrorKind::Unavailable), ..Link::default() };
    world.route(0, move |object, request| {
        match (object == &x() && is_write(request), std::mem::take(&mut is_first)) {
            (true, true) => UNANSWERED,
            (true, false) => refused,
            (false, was_first) => {
                is_first = was_first;
                Link::default()
            }
        }
    });
    world.acquire(0, X);
    world.run(6.0)?;
    world.give_up(0, X);
    world.reconnect(0);
    world.acquire(1, X);
    gets(&mut world, 1, 20.0)
}

/// A holder releases a lease that another waits for, and wants it again at once.
fn wanted_again_at_once<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    world.release(0, X);
    world.acquire(0, X);
    gets(&mut world, 1, 4.0)
}

/// A lease is deleted under a holder that cannot read it; its session is renewed as ever.
fn deleted_from_under_a_blind_holder<R: SessionRules>() -> Result<(), String> {
    let mut world = with_config::<R>(|name| audited(name, 4.0))?;
    world.route(0, |object, _| if object == &x() { LOST } else { Link::default() });
    world.store.objects.remove(&x());
    // A + R + W behind its creation.
    gets(&mut world, 1, 19.0)
}

/// A lease is deleted right behind an audit; its holder notices at the next one.
fn deleted_from_under_a_holder<R: SessionRules>() -> Result<(), String> {
    let mut world = with_config::<R>(|name| audited(name, 10.0))?;
    world.store.objects.remove(&x());
    gets(&mut world, 1, 26.0)
}

/// The same with garbage in its place.
fn garbage_over_a_holder<R: SessionRules>() -> Result<(), String> {
    let mut world = with_config::<R>(|name| audited(name, 10.0))?;
    world.store.objects.insert(x(), Stored::Garbage(1));
    gets(&mut world, 1, 26.0)
}

/// A lease is deleted under a holder that cannot read it. A third process creates it, and ends while
/// it is held back: whoever takes it from there does not know of the holder before.
fn the_creator_of_a_deleted_lease_stops<R: SessionRules>() -> Result<(), String> {
    let mut world = creator_of_a_deleted_lease::<R>()?;
    world.with(1, |machine, now| machine.stop(now))?;
    world.add(audited("c", 30.0));
    world.acquire(2, X);
    gets(&mut world, 2, 60.0)
}

/// The same, and it releases the lease while it is held back.
fn the_creator_of_a_deleted_lease_releases_it<R: SessionRules>() -> Result<(), String> {
    let mut world = creator_of_a_deleted_lease::<R>()?;
    world.release(1, X);
    world.add(audited("c", 30.0));
    world.acquire(2, X);
    gets(&mut world, 2, 60.0)
}

fn creator_of_a_deleted_lease<R: SessionRules>() -> Result<World<R>, String> {
    let mut world = with_config::<R>(|name| audited(name, 30.0))?;
    world.route(0, |object, _| if object == &x() { LOST } else { Link::default() });
    world.store.objects.remove(&x());
    world.run_until(5.0, |world| world.nodes[1].machine.held(&key(X)).is_some())?;
    Ok(world)
}

/// The waiter cannot read for a while; the holder's session is renewed meanwhile, an old version of
/// it is put back, and the holder is cut off.
fn an_old_version_comes_back<R: SessionRules>() -> Result<(), String> {
    let mut world = holder_and_waiter::<R>()?;
    let session = world.session(0);
    let seen = world.store.served.len();
    world.run_until(3.0, |world| {
        let mut served = world.store.served[seen..].iter();
        served.any(|it| it.node == 1 && it.object == session)
    })?;
    let old = world.store.objects[&session].clone();
    // Its own session must outlive the gap.
    let own = world.session(1);
    world.route(1, move |object, _| if *object == own { Link::default() } else { LOST });
    world.run(6.0)?;
    let renewals = world.store.served.len();
    world.run_until(3.0, |world| {
        world.store.served[renewals..].iter().any(|it| it.node == 0 && it.is_write)
    })?;
    world.run(0.05)?;
    world.cut_off(0);
    world.store.objects.insert(session, old);
    world.reconnect(1);
    gets(&mut world, 1, 16.0)
}

/// A lease is deleted and created by another process within one second.
fn deleted_and_created_within_a_second<R: SessionRules>() -> Result<(), String> {
    let mut world = live::<R>(&["a", "b", "c"]);
    // Such a deletion is beyond what is promised without audit; the token has to do.
    world.tolerates_overlaps = true;
    for round in 0..3 {
        world.take(round, X, 0.2)?;
        world.store.objects.remove(&x());
    }
    Ok(())
}

/// Epochs that are counted are above the one of a lease that was released.
fn counted_epochs<R: SessionRules>() -> Result<(), String> {
    let mut world = with_config::<R>(|name| {
        let mut config = config(name);
        config.epochs = lease_core::machine::EpochOrigin::Counter;
        config
    })?;
    let first = world.nodes[0].machine.held(&key(X));
    world.release(0, X);
    gets(&mut world, 1, 4.0)?;
    let second = world.nodes[1].machine.held(&key(X));
    if second > first { Ok(()) } else { Err(format!("{second:?} after {first:?}")) }
}
