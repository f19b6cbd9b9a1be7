//! The guard of one tenure of a named lease.

use super::{
    error::NamedTenureEnded,
    shared::{Left, Named, Shared, Wish},
};
use crate::{ObjectKey, session::LeaseEndReason};
use fencing::{Epoch, Fence};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// One period of holding a named lease: its own epoch, its own fence, and the ways to end it.
///
/// It costs nothing to keep: the session is renewed, not the lease. Dropping it shuts the fence at
/// once, and frees the lease only T later, since something may still act under it;
/// [`release`](Self::release) gives it back now, and [`run`](Self::run) does that when the work has
/// ended.
///
/// ```
/// # use lease_core::{runner::SessionManager, session::LeaseEndReason, testing::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session =
///     SessionManager::builder(MemoryStore::new(), "orders").ephemeral_instance().start().await?;
/// let tenure = session.acquire("shard-7").await?;
/// let fence = tenure.fence();
/// fence.check()?;                                     // before every side effect
/// assert_eq!(fence.epoch(), tenure.epoch());          // the token of its writes
/// assert_eq!(tenure.release().await, LeaseEndReason::Released);
/// assert!(fence.check().is_err());
/// # session.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct NamedTenure {
    named: Arc<Named>,
    shared: Arc<Shared>,
}

impl NamedTenure {
    pub(super) fn new(named: Arc<Named>, shared: Arc<Shared>) -> Self {
        Self { named, shared }
    }

    pub(super) fn step_down_budget(&self) -> Duration {
        self.shared.step_down_budget
    }

    /// Which lease, by its key in the store.
    #[must_use]
    pub fn lease(&self) -> &ObjectKey {
        &self.named.lease
    }

    /// The check "do I still hold it, now?" It is shut with the session's own fence, by the same
    /// look at the clock.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.named.fence()
    }

    /// The fencing token of this tenure: every write under the lease carries it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.named.epoch()
    }

    /// Cancelled when what works under the tenure has to end: the tenure is over, or the manager is
    /// being [stopped](super::SessionManager::stop). In the second case the fence stays open until the
    /// work has ended.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.named.lost.clone()
    }

    /// Why the tenure ended, if it has.
    #[must_use]
    pub fn end_reason(&self) -> Option<LeaseEndReason> {
        self.named.end_reason()
    }

    /// Waits until the tenure has ended, and tells why. Its fence is shut by then.
    ///
    /// # Cancel safety
    ///
    /// Nothing changes if the future is dropped.
    pub async fn ended(&self) -> LeaseEndReason {
        self.named.ended().await
    }

    /// Gives the lease back: the fence shuts first, then the release is written, and repeated until it
    /// is certain. Only call it when everything that acts under the tenure has ended.
    ///
    /// # Cancel safety
    ///
    /// The wish stands if the future is dropped.
    pub async fn release(self) -> LeaseEndReason {
        self.give_back().await
    }

    pub(super) async fn give_back(&self) -> LeaseEndReason {
        self.leave(Wish::Release);
        self.ended().await
    }

    /// The fence is shut now, and the lease freed T later: something of the work may still run.
    pub(super) fn lapse(&self) {
        self.leave(Wish::Lapse);
    }

    pub(super) fn tell_end(&self, reason: LeaseEndReason) -> NamedTenureEnded {
        NamedTenureEnded { lease: self.named.lease.clone(), epoch: self.named.epoch(), reason }
    }

    fn leave(&self, wish: Wish) {
        if self.named.leave(wish) {
            self.shared.leave(Left::Tenure(Arc::clone(&self.named)));
        }
    }
}

impl Drop for NamedTenure {
    fn drop(&mut self) {
        self.lapse();
    }
}
