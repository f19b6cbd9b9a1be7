//! The application of a world: what a service does with the lease, and where its writes go.

use super::{dice::Dice, node::Wish, trace::Tenure};
use crate::machine::{EndReason, Predecessor};
use fencing::{Epoch, Fence, FencingGate};
use std::time::Duration;

/// What a service does with the lease, as a test of its own failover wants to drive it.
///
/// One value for each process; it dies with the process. What outlives it (a database, a bucket)
/// belongs into something that all of them share, an `Rc` for instance, and is written through
/// [`Host::write_later`], so that a write can be on its way when its process dies.
pub trait Application {
    /// The lease is held, the fence is shut: restore, then [`Host::confirm`] or [`Host::abandon`].
    fn taking_over(&mut self, predecessor: &Predecessor, host: &mut Host<'_>);

    /// The fence is open.
    fn active(&mut self, host: &mut Host<'_>);

    /// A timer of [`Host::wake_after`] has run.
    fn woken(&mut self, timer: u64, host: &mut Host<'_>);

    /// The tenure is over.
    fn ended(&mut self, reason: &EndReason, host: &mut Host<'_>);
}

/// What an application sees of its host, and what it may ask for.
#[derive(Debug)]
pub struct Host<'a> {
    pub(super) fence: Option<&'a Fence>,
    pub(super) tenure: Option<Tenure>,
    pub(super) dice: &'a mut Dice,
    pub(super) wishes: &'a mut Vec<Wish>,
    pub(super) is_peaceful: bool,
    pub(super) ttl: Duration,
}

impl Host<'_> {
    /// The fence of the tenure, if there is one.
    #[must_use]
    pub const fn fence(&self) -> Option<&Fence> {
        self.fence
    }

    /// The epoch of the tenure, if there is one.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.fence.map(Fence::epoch)
    }

    /// This instance's T.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Chance of this world.
    pub const fn dice(&mut self) -> &mut Dice {
        self.dice
    }

    /// Nothing goes wrong any more; an application that fails on purpose should stop that.
    #[must_use]
    pub const fn is_peaceful(&self) -> bool {
        self.is_peaceful
    }

    /// The takeover is complete.
    pub fn confirm(&mut self) {
        self.wishes.push(Wish::Confirm);
    }

    /// The takeover is given up.
    pub fn abandon(&mut self) {
        self.wishes.push(Wish::Abandon);
    }

    /// The lease is given back.
    pub fn release(&mut self) {
        self.wishes.push(Wish::Release);
    }

    /// Calls [`Application::woken`] with `timer` after so much true time, if the process lives and
    /// runs then; once it runs again, if it does not.
    pub fn wake_after(&mut self, after: Duration, timer: u64) {
        self.wishes.push(Wish::Wake(after, timer));
    }

    /// Something that takes effect so much later whatever becomes of this process meanwhile, as a
    /// request on the wire does. What it returns is an error if it should not have come to pass.
    pub fn write_later(
        &mut self,
        after: Duration,
        write: impl FnOnce() -> Result<(), String> + 'static,
    ) {
        self.wishes.push(Wish::Write(after, Box::new(write)));
    }

    /// A write under the token of this tenure to the world's own resource, which admits by a
    /// [`FencingGate`]. It arrives so much later.
    pub fn write_to_gate(&mut self, after: Duration) {
        if let Some(tenure) = self.tenure {
            self.wishes.push(Wish::GateWrite(after, tenure));
        }
    }
}

/// The application that a world has if it is given none: it restores for a while, writes whenever
/// its fence lets it, with writes that may take long to arrive, and now and then gives up.
#[derive(Debug, Default)]
pub struct Writer {
    /// The timers of earlier tenures do not count.
    tenure: u64,
    is_moody: bool,
}

impl Writer {
    /// One that also abandons and releases, for worlds with
    /// [`Hazard::Application`](super::Hazard::Application).
    #[must_use]
    pub const fn moody() -> Self {
        Self { tenure: 0, is_moody: true }
    }

    fn wake_after(&self, after: Duration, host: &mut Host<'_>) {
        host.wake_after(after, self.tenure);
    }
}

impl Application for Writer {
    fn taking_over(&mut self, _: &Predecessor, host: &mut Host<'_>) {
        self.tenure += 1;
        let ttl = host.ttl();
        if host.is_peaceful() || host.dice().one_in(2) {
            return host.confirm();
        }
        let restoring = host.dice().of_any_size(ttl * 2);
        self.wake_after(restoring, host);
    }

    fn active(&mut self, host: &mut Host<'_>) {
        self.woken(self.tenure, host);
    }

    fn woken(&mut self, timer: u64, host: &mut Host<'_>) {
        if timer != self.tenure {
            return;
        }
        let is_moody = self.is_moody && !host.is_peaceful();
        let ttl = host.ttl();
        if host.fence().is_some_and(Fence::is_open) {
            let travel = host.dice().of_any_size(ttl);
            host.write_to_gate(travel);
            if is_moody && host.dice().one_in(12) {
                return host.release();
            }
        } else if is_moody && host.dice().one_in(3) {
            return host.abandon();
        } else {
            host.confirm();
        }
        let pause = host.dice().of_any_size(ttl * 2);
        self.wake_after(pause, host);
    }

    fn ended(&mut self, _: &EndReason, _: &mut Host<'_>) {
        self.tenure += 1;
    }
}

/// The world's own resource: a gate, and whose write it admitted last.
#[derive(Debug, Default)]
pub(super) struct Resource {
    gate: FencingGate,
}

impl Resource {
    /// Whether a write that carries the token of this tenure is admitted.
    pub(super) fn admits(&self, tenure: Tenure) -> bool {
        self.gate.admit(tenure.epoch).is_ok()
    }
}
