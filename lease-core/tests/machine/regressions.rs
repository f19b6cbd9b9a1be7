//! Schedules that a fuzzer found faults with.

use crate::world::{World, active_and_standby, secs};
use lease_core::machine::{EndReason, Event, Protocol, Role};

/// A look at the fence while the wall clock was off latches it, and nobody told the machine: it
/// renewed for ever a lease under which nobody could act.
#[test]
fn a_fence_that_shut_itself_ends_the_tenure_with_the_next_renewal() {
    let mut world: World<Protocol> = active_and_standby(10.0, 2.0);
    let (clock, epoch) = (world.nodes[0].clock.clone(), world.nodes[0].epoch().unwrap());
    clock.jump_wall(3_600);
    assert!(!world.nodes[0].is_open(), "what its work sees");
    clock.jump_wall(-3_600);
    assert_eq!(world.nodes[0].machine.role(), Role::Active, "it has not looked meanwhile");

    let shut = world.time;
    world.run_until(60.0, |world| world.nodes[0].machine.role() == Role::Standby).unwrap();
    assert!(world.time - shut <= secs(2.5), "it is found with the next renewal");
    let ended = Event::Ended { epoch, reason: EndReason::Suspended };
    assert_eq!(world.nodes[0].events.iter().filter(|event| **event == ended).count(), 1);
    world.run_until(60.0, |world| world.nodes.iter().any(|node| node.is_open())).unwrap();
    assert!(world.time - shut <= secs(2.5 + 10.0 + 2.5), "somebody is active again");
}

#[test]
fn a_tenure_ends_once_over_its_fence() {
    let mut world: World<Protocol> = active_and_standby(10.0, 2.0);
    let epoch = world.nodes[0].epoch().unwrap();
    world.with(0, |machine, now| machine.handle_fence_shut(epoch, now));
    assert_eq!(world.nodes[0].machine.role(), Role::Standby);
    // Of a tenure that is over it says nothing.
    world.with(0, |machine, now| machine.handle_fence_shut(epoch, now));
    let ends = |world: &World<Protocol>| {
        world.nodes[0].events.iter().filter(|it| matches!(it, Event::Ended { .. })).count()
    };
    assert_eq!(ends(&world), 1);
}
