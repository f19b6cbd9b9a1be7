//! Schedules of the whole machine: every byte string is one.
//!
//! Two or three instances, each with a clock of its own and a real fence, share one lease on one
//! store whose versions come from content. The first bytes choose the configuration, the others what
//! happens: how requests fare, what the applications wish, which process is paused, suspended or
//! killed, what somebody else does to the object. Behind the schedule everything heals, and then some
//! instance must become active.
//!
//! | asserted | where |
//! | --- | --- |
//! | never two fences open at one true instant | `World::look` |
//! | epochs grow in the order in which fences open | `World::fence_opened` |
//! | a fence opens after the history has its epoch | `World::fence_opened` |
//! | a new epoch is above all that its process knows, its history, the floor | `checks::Acquisitions` |
//! | a write that did not land proves nothing, one that did no more than its own S + window | `checks::Tenures` |
//! | no write of a tenure at or past its deadline, or after its end | `checks::Tenures` |
//! | the fence is shut before a release is sent, and agrees with the machine while open | `checks::Tenures` |
//! | one `Ended` for each `TakingOver`, at most one `Active` between them | `checks::Tenures` |
//! | with nothing left to do, a machine wakes later than now | `Node::settle` |
//! | nothing queues without bound | `Node::settle`, `World::end` |
//! | when all is well again the lease is taken, and kept | `World::end` |
//!
//! What the protocol leaves to the token alone is not in a schedule (section 7, "Outside the model"):
//! see `World::may_put`.

mod checks;
mod messages;
mod node;
mod schedule;
mod store;
mod vandal;
mod world;

/// Runs the schedule that `data` is. With `HOLDFAST_TRACE` set it is told on standard error.
pub fn run(data: &[u8]) {
    let mut bytes = schedule::Bytes::new(data);
    let setup = schedule::Setup::read(&mut bytes);
    let mut world = world::World::new(setup);
    while let Some(step) = bytes.step() {
        if !world.step(step) {
            break;
        }
    }
    world.end();
}
