//! Each rule of the protocol holds in a schedule that needs it, and the same schedule shows the
//! fault once the rule is taken out. A check that cannot fail proves nothing.

use crate::world::{
    Fate, Link, Object, World, active_alone, active_and_standby, config, epoch, id, secs, timing,
};
use fencing::Epoch;
use lease_core::{
    machine::{AbandonReason, EpochOrigin, Facts, Past, Protocol, Role, Rules},
    store::StoreErrorKind::InDoubt,
};

/// The schedule passes with all rules, and fails without this one.
macro_rules! rule {
    ($test:ident, $switch:ident, $schedule:ident) => {
        #[test]
        fn $test() {
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
            struct Without;
            impl Rules for Without {
                const $switch: bool = false;
            }
            $schedule::<Protocol>().unwrap();
            let fault =
                $schedule::<Without>().expect_err("the rule was taken out and nobody noticed");
            println!("without {}: {fault}", stringify!($switch));
        }
    };
}

rule!(margin_covers_clock_rates, MARGIN_AT_LEAST_A_FIFTH, clocks_of_different_rates);
rule!(the_wait_covers_the_clusters_ttl, WAIT_COVERS_THE_CLUSTERS_TTL, garbage_over_a_longer_lease);
rule!(a_blind_gap_restarts_the_wait, BLIND_GAP_RESTARTS, an_old_version_comes_back);
rule!(the_deadline_is_half_open, DEADLINE_IS_HALF_OPEN, at_the_deadline);
rule!(valid_from_sending, VALID_FROM_SENDING, a_slow_reply);
rule!(seen_from_the_answer, SEEN_FROM_THE_ANSWER, a_slow_read);
rule!(case_49_the_nonce_decides, NONCE_DECIDES, clones_lose_a_reply_each);
rule!(adopted_with_its_own_sending, ADOPTED_WITH_ITS_OWN_SENDING, the_first_of_many_landed);
rule!(case_47_creation_is_held_back, CREATION_IS_HELD_BACK, deleted_from_under_a_holder);
rule!(case_48_a_release_needs_evidence, RELEASE_NEEDS_EVIDENCE, an_old_release_is_put_back);
rule!(case_50_held_back_is_never_released, HELD_BACK_IS_NEVER_RELEASED, a_creator_gives_up);
rule!(history_before_opening, HISTORY_BEFORE_OPENING, the_history_cannot_be_written);
rule!(reclaim_only_what_was_opened, RECLAIM_ONLY_WHAT_WAS_OPENED, a_copied_directory);
rule!(case_32_the_clock_is_a_floor, CLOCK_IS_A_FLOOR, epochs_after_a_deletion);
rule!(unacceptable_epochs_are_ignored, UNACCEPTABLE_EPOCHS_ARE_IGNORED, a_forged_last_epoch);

const LOST: Link = Link { out: secs_of(5), back: secs_of(5), fate: Fate::Lost };

const fn secs_of(millis: u64) -> std::time::Duration {
    std::time::Duration::from_millis(millis)
}

/// Runs for `seconds` more.
fn on<R: Rules>(world: &mut World<R>, seconds: f64) -> Result<(), String> {
    let until = world.time.as_secs_f64() + seconds;
    world.run(until)
}

/// Runs to shortly after the active node's next renewal has landed.
fn renewed<R: Rules>(world: &mut World<R>) -> Result<(), String> {
    let writes = world.writes;
    let limit = world.time.as_secs_f64() + 20.0;
    world.run_until(limit, |world| world.writes > writes)
}

fn took_over<R: Rules>(world: &World<R>, node: usize) -> Result<(), String> {
    match world.nodes[node].machine.role() {
        Role::Active => Ok(()),
        other => Err(format!("node {node} is {other:?} at {:?}", world.time)),
    }
}

/// The holder's clock is 8 % slow, the standby's 8 % fast; R is small, so that only the fifth helps.
fn clocks_of_different_rates<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 0.5);
    world.nodes[0].clock.set_rate(920_000);
    world.nodes[1].clock.set_rate(1_080_000);
    on(&mut world, 5.0)?;
    world.nodes[0].link = LOST;
    on(&mut world, 12.0)?;
    took_over(&world, 1)
}

/// The holder has T = 20 s and is cut off; garbage is put in its place; a fresh instance with
/// T = 10 s, which was told that the cluster has 20 s, must wait that long.
fn garbage_over_a_longer_lease<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(20.0, 2.0);
    world.nodes[0].link = LOST;
    world.object = Some(Object::garbage());
    let mut config = config("b", 10.0, 2.0);
    config.timing = timing(10.0, 2.0).with_max_cluster_ttl(secs(20.0)).unwrap();
    world.add(config, Past::default());
    on(&mut world, 25.0)?;
    took_over(&world, 1)
}

/// The standby sees V, then cannot read; V is renewed, and then put back by hand.
fn an_old_version_comes_back<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 2.0);
    renewed(&mut world)?;
    let old = world.object.clone();
    on(&mut world, 1.9)?;
    world.nodes[1].link = LOST;
    on(&mut world, 6.5)?;
    renewed(&mut world)?;
    world.nodes[0].link = LOST;
    world.object = old;
    world.nodes[1].link = Link::default();
    on(&mut world, 16.0)?;
    took_over(&world, 1)
}

/// At S + T − M itself the tenure is over.
fn at_the_deadline<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    world.nodes[0].link = LOST;
    // The wall clock, set back, is no second look here.
    world.nodes[0].clock.jump_wall(-3600);
    let deadline = world.nodes[0].machine.deadline().ok_or("no tenure")?;
    let clock = world.nodes[0].clock.clone();
    clock.advance_to(deadline);
    world.with(0, |machine, now| machine.handle_timeout(now));
    match world.nodes[0].machine.role() {
        Role::Standby => Ok(()),
        other => Err(format!("{other:?} at the deadline")),
    }
}

/// A renewal lands at once, its answer comes 1.95 s later, and then nothing gets through.
fn a_slow_reply<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 2.0);
    world.nodes[0].clock.set_rate(950_000);
    world.nodes[1].clock.set_rate(1_050_000);
    on(&mut world, 4.0)?;
    world.nodes[0].link.back = secs(1.9);
    // The standby reads right behind the renewal.
    renewed(&mut world)?;
    world.nodes[0].link = LOST;
    world.add(config("c", 10.0, 2.0), Past::default());
    world.nodes[2].clock.set_rate(1_050_000);
    on(&mut world, 13.0)?;
    took_over(&world, 2)
}

/// A standby's read takes nearly R/2 to arrive; a renewal lands just before it does.
fn a_slow_read<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    world.nodes[0].clock.set_rate(920_000);
    on(&mut world, 5.0)?;
    renewed(&mut world)?;
    // The next renewal is sent 2/0.92 s after this one and is the last that lands. A fresh standby's
    // first read is on its way since 0.91 s when it arrives, right behind that renewal.
    on(&mut world, 1.27)?;
    let slow = Link { out: secs(0.915), ..Link::default() };
    world.add_behind(slow, config("b", 10.0, 2.0), Past::default());
    world.nodes[1].clock.set_rate(1_080_000);
    renewed(&mut world)?;
    world.nodes[0].link = LOST;
    world.nodes[1].link = Link::default();
    on(&mut world, 12.0)?;
    took_over(&world, 1)
}

/// Two running copies of one instance take over at the same moment and lose the answers: both read
/// a record that carries their id, epoch and number. Only one of them wrote it.
fn clones_lose_a_reply_each<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    let twin = config("twin", 10.0, 2.0);
    world.add(twin.clone(), Past::default());
    world.add(twin, Past::default());
    world.nodes[0].link = LOST;
    let deadline = world.time.as_secs_f64() + 20.0;
    world.run_until(deadline, |world| world.nodes[0].machine.role() == Role::Standby)?;
    world.nodes[1].link.fate = Fate::AppliedInDoubt;
    world.nodes[2].link.fate = Fate::AppliedInDoubt;
    let writes = world.writes;
    world.run_until(deadline, |world| world.writes > writes)?;
    // The second one's request is refused; its answer is lost too.
    world.nodes[1].link = Link::default();
    world.nodes[2].link = Link::default();
    on(&mut world, 4.0)
}

/// Of many renewals in doubt the first landed; the later ones never arrived.
fn the_first_of_many_landed<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 1.0);
    renewed(&mut world)?;
    world.nodes[0].link.fate = Fate::AppliedInDoubt;
    renewed(&mut world)?;
    world.nodes[0].link.fate = Fate::Told(InDoubt);
    on(&mut world, 4.0)?;
    // One is refused; a read shows the first.
    world.nodes[0].link = Link::default();
    on(&mut world, 0.13)?;
    world.nodes[0].link = LOST;
    on(&mut world, 12.0)?;
    took_over(&world, 1)
}

/// The lease is deleted while its holder is cut off; another instance creates it anew.
fn deleted_from_under_a_holder<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 2.0);
    world.nodes[0].link = LOST;
    // Deleted, created by another instance, deleted again: the second creator waits as well.
    world.object = None;
    on(&mut world, 3.0)?;
    world.object = None;
    world.add(config("c", 10.0, 2.0), Past::default());
    on(&mut world, 20.0)?;
    took_over(&world, 1).or_else(|_| took_over(&world, 2))
}

/// An old released record is put back while the holder is cut off; a fresh instance finds it.
fn an_old_release_is_put_back<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    let current = world.nodes[0].epoch().ok_or("no tenure")?;
    world.nodes[0].link = LOST;
    world.object = Some(Object::of(Facts::new(None, current, 900, None, secs(10.0))));
    world.add(config("b", 10.0, 2.0), Past::default());
    on(&mut world, 13.0)?;
    took_over(&world, 1)
}

/// The creator of a lease that was deleted from under its holder gives up while it is held back.
fn a_creator_gives_up<R: Rules>() -> Result<(), String> {
    let mut world = active_and_standby::<R>(10.0, 2.0);
    world.add(config("c", 10.0, 2.0), Past::default());
    on(&mut world, 4.0)?;
    world.nodes[0].link = LOST;
    world.nodes[1].confirms = false;
    world.nodes[2].link.fate = Fate::Told(InDoubt);
    world.object = None;
    let limit = world.time.as_secs_f64() + 5.0;
    world.run_until(limit, |world| world.nodes[1].machine.role() == Role::TakingOver)?;
    world.nodes[2].link = Link::default();
    on(&mut world, 2.1)?;
    world.with(1, |machine, now| machine.abandon(AbandonReason::Application, now));
    world.with(1, |machine, now| machine.want(false, now));
    on(&mut world, 16.0)?;
    took_over(&world, 2)
}

/// Not a single note reaches the disk: the fence must not open.
fn the_history_cannot_be_written<R: Rules>() -> Result<(), String> {
    let mut world = World::<R>::new();
    world.add(config("a", 10.0, 2.0), Past::default());
    world.nodes[0].history_works = false;
    on(&mut world, 30.0)?;
    match world.opened.first() {
        Some((at, ..)) => {
            Err(format!("a fence opened at {at:?} that the history knows nothing of"))
        }
        None => Ok(()),
    }
}

/// An instance directory was copied: the copy's history shows the epoch, but not under this lock.
fn a_copied_directory<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    let mut past = Past::default();
    past.last_epoch = world.nodes[0].epoch();
    past.reclaimable = None;
    world.nodes[0].link = LOST;
    world.add(config("a", 10.0, 2.0), past);
    on(&mut world, 13.0)?;
    took_over(&world, 1)
}

/// The lease is deleted, and a fresh instance creates it: its epoch must be larger all the same.
fn epochs_after_a_deletion<R: Rules>() -> Result<(), String> {
    let mut world = active_alone::<R>(10.0, 2.0);
    world.object = None;
    on(&mut world, 3.0)?;
    world.with(0, |machine, now| machine.stop(now));
    world.object = None;
    world.add(config("b", 10.0, 2.0), Past::default());
    on(&mut world, 15.0)?;
    took_over(&world, 1)?;
    let epochs: Vec<Epoch> = world.opened.iter().map(|(_, _, epoch)| *epoch).collect();
    match epochs.is_sorted_by(|a, b| a < b) {
        true => Ok(()),
        false => Err(format!("epochs did not grow: {epochs:?}")),
    }
}

/// A forged record says the last epoch there is.
fn a_forged_last_epoch<R: Rules>() -> Result<(), String> {
    let mut world = World::<R>::new();
    let facts = Facts::new(Some(id("mallory")), Epoch::MAX, 1, None, secs(10.0));
    world.object = Some(Object::forged(facts));
    let mut config = config("a", 10.0, 2.0);
    config.epochs = EpochOrigin::Counter;
    world.add(config, Past::default());
    on(&mut world, 30.0)?;
    took_over(&world, 0)?;
    match world.nodes[0].epoch() {
        Some(first) if first == epoch(1) => Ok(()),
        other => Err(format!("took {other:?}")),
    }
}
