//! The guard of one period of holding.

use super::{
    error::TenureEnded,
    shared::{Abandon, Phase, Shared, TenureState, Wish},
};
use crate::{
    machine::{EndReason, Inherited, Predecessor},
    record::SnapshotMark,
};
use fencing::{Epoch, Fence, MonotonicTime};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// One period of holding the lease: its epoch, its fence, and the ways to end it.
///
/// It is renewed in the background for as long as this value lives. Dropping it shuts the fence at
/// once and lets the lease lapse; [`release`](Self::release) gives it back, and
/// [`run`](Self::run) does that when the work has ended.
///
/// ```
/// # use lease_core::{LeaseManager, Timing, machine::{EndReason, FirstStart}, testing::MemoryStore};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = tempfile::tempdir()?;
/// # let lease = LeaseManager::builder(MemoryStore::new(), "orders")
/// #     .timing(Timing::short(Duration::from_millis(300), Duration::from_millis(100))?)
/// #     .instance_dir(scratch.path().join("instance")).first_start(FirstStart::Immediate).start().await?;
/// let tenure = lease.acquire().await?;
/// let fence = tenure.fence();
/// fence.check()?;                                                 // it may act
/// assert_eq!(fence.epoch(), tenure.epoch());                      // the token of its writes
/// assert_eq!(tenure.release().await, EndReason::Released);
/// assert!(fence.check().is_err());                                // and never again under this epoch
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Tenure {
    state: Arc<TenureState>,
    pub(super) shared: Arc<Shared>,
    pub(super) step_down_budget: Duration,
    release_on_drop: bool,
}

impl Tenure {
    pub(super) fn new(
        state: Arc<TenureState>,
        shared: Arc<Shared>,
        step_down_budget: Duration,
    ) -> Self {
        Self { state, shared, step_down_budget, release_on_drop: false }
    }

    /// The check "do I still hold it, now?" Clone it into every worker; ask it before every side
    /// effect.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.fence.clone()
    }

    /// The fencing token of this tenure: every write carries it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.state.epoch
    }

    /// What was there before this tenure.
    #[must_use]
    pub fn predecessor(&self) -> &Predecessor {
        &self.state.predecessor
    }

    /// What stood in the lease before this tenure, and what was known of the cluster by then: what a
    /// decision about restoring a snapshot is made of.
    #[must_use]
    pub fn inherited(&self) -> &Inherited {
        &self.state.inherited
    }

    /// The lease names this snapshot as the newest, from the next renewal on, which is sent at once.
    ///
    /// Call it when a snapshot is stored, and before [`confirm`](Self::confirm) with the one that was
    /// restored: the next takeover must find one at least as new. An active instance never names an
    /// older one than before.
    pub fn name_snapshot(&self, mark: SnapshotMark) {
        self.state.name_snapshot(mark);
        self.shared.wake.notify_one();
    }

    /// Until when the fence stays shut whatever is confirmed, by the manager's clock: the lease was
    /// missing, or its release may be an old one, so another holder may still act.
    #[must_use]
    pub fn held_back_until(&self) -> Option<MonotonicTime> {
        self.state.held_back_until
    }

    /// Cancelled when what works under the tenure has to end: the tenure is over, or the manager is
    /// being [stopped](super::LeaseManager::stop). In the second case the fence stays open until the
    /// work has ended, so that it can end in good order.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.state.lost.clone()
    }

    /// Why the tenure ended, if it has.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        match self.state.phase() {
            Phase::Ended(reason) => Some(reason),
            Phase::Active | Phase::TakingOver => None,
        }
    }

    /// Waits until the tenure has ended, and tells why. Its fence is shut by then.
    ///
    /// # Cancel safety
    ///
    /// Nothing changes if the future is dropped.
    pub async fn ended(&self) -> EndReason {
        self.state.ended().await
    }

    /// The application has taken over: waits out a hold-back, until the history has this epoch and
    /// the fence is open. At once if it is open already.
    ///
    /// # Errors
    ///
    /// [`TenureEnded`] if the tenure ended before.
    ///
    /// # Cancel safety
    ///
    /// The confirmation stands if the future is dropped.
    pub async fn confirm(&self) -> Result<(), TenureEnded> {
        self.wish(Wish::Confirm);
        match self.state.decided().await {
            Phase::Ended(reason) => Err(TenureEnded { epoch: self.epoch(), reason }),
            Phase::Active | Phase::TakingOver => Ok(()),
        }
    }

    /// The application cannot take over. The lease is released (or, held back, left to lapse), and
    /// this instance keeps out of the next takeover for T. Returns how it ended; a tenure that is
    /// confirmed already is not abandoned but released.
    ///
    /// # Cancel safety
    ///
    /// The wish stands if the future is dropped.
    pub async fn abandon(self) -> EndReason {
        self.give_up(Abandon::Application).await
    }

    pub(super) async fn give_up(&self, reason: Abandon) -> EndReason {
        let wish = match self.state.phase() {
            Phase::TakingOver => Wish::Abandon(reason),
            Phase::Active | Phase::Ended(_) => Wish::Release,
        };
        self.wish(wish);
        self.ended().await
    }

    /// Gives the lease back: the fence shuts first, then the release is written. Only call it when
    /// everything that acts under the tenure has ended ([`run`](Self::run) sees to that).
    ///
    /// Returns how the tenure ended: [`EndReason::Released`], or whatever came before that.
    ///
    /// # Cancel safety
    ///
    /// The wish stands if the future is dropped.
    pub async fn release(self) -> EndReason {
        self.give_back().await
    }

    pub(super) async fn give_back(&self) -> EndReason {
        // The wish goes first: a driver that finds the fence shut without one takes it for a fault.
        self.state.set_wish(Wish::Release);
        self.state.shut();
        self.shared.wake.notify_one();
        self.ended().await
    }

    /// The work failed in a way that leaves open what it still does: the fence is shut now, and the
    /// lease lapses.
    pub(super) fn fail(&self) {
        self.state.set_wish(Wish::Fail);
        self.state.shut();
        self.shared.wake.notify_one();
    }

    pub(super) fn release_on_drop(&mut self, release: bool) {
        self.release_on_drop = release;
    }

    fn wish(&self, wish: Wish) {
        self.state.set_wish(wish);
        self.shared.wake.notify_one();
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        let wish = if self.release_on_drop { Wish::Release } else { Wish::Drop };
        // What was wished before goes on, a release that is on its way for one.
        if matches!(self.state.wish(), Wish::Hold | Wish::Confirm) {
            self.state.set_wish(wish);
        }
        // Shut here, not only by the driver: nothing may act between this line and its next turn.
        self.state.shut();
        self.shared.wake.notify_one();
    }
}
