//! The handle of a service on its lease.

use super::{
    builder::{LeaseBuilder, UntrustedPredecessor},
    error::{AcquireError, RunError},
    shared::{Abandon, Phase, Shared},
    status::{EventStream, Status},
    tenure::Tenure,
};
use crate::{history::InstanceDir, machine::Role, store::LeaseStore};
use fencing::Clock;
use futures_util::FutureExt;
use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};
use tokio::sync::{Mutex, watch};

/// Watches one lease in the background, and acquires it when asked to.
///
/// One manager serves one lease in one process. It starts as a standby; [`acquire`](Self::acquire)
/// waits until the lease is ours and returns the [`Tenure`], the guard of one period of holding.
/// Dropping the manager ends everything at once: the fence is shut, nothing renews any more, the
/// lease lapses. [`stop`](Self::stop) does it gracefully.
///
/// ```
/// use lease_core::{Timing, runner::LeaseManager, testing::MemoryStore};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = tempfile::tempdir()?;
/// # let instance_dir = scratch.path().join("instance");
/// let lease = LeaseManager::builder(MemoryStore::new(), "orders")
///     .timing(Timing::short(Duration::from_millis(300), Duration::from_millis(100))?)
///     .instance_dir(instance_dir)
///     .start()
///     .await?;
///
/// let tenure = lease.acquire().await?;            // standby until it is ours
/// let fence = tenure.fence();                     // clone it into every worker
/// let sum = tenure
///     .run(async |lost| {                         // renewed in the background
///         fence.check()?;                         // before every side effect
///         # let _ = lost;
///         Ok::<_, lease_core::fencing::FenceShut>(40 + 2)
///     })
///     .await?;                                    // released once the work has ended
/// assert_eq!(sum, 42);
/// lease.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LeaseManager {
    shared: Arc<Shared>,
    status: watch::Receiver<Status>,
    clock: Arc<dyn Clock>,
    untrusted: UntrustedPredecessor,
    step_down_budget: Duration,
    /// One acquisition at a time; others wait for their turn.
    turn: Mutex<()>,
}

impl LeaseManager {
    /// Chooses how the lease of `cluster` is held on `store`.
    ///
    /// Every instance of a cluster uses the same store, cluster name, timing and secret; each has an
    /// instance directory of its own.
    pub fn builder(store: impl LeaseStore, cluster: &str) -> LeaseBuilder {
        LeaseBuilder::new(Arc::new(store), cluster)
    }

    pub(super) fn new(
        shared: Arc<Shared>,
        status: watch::Receiver<Status>,
        clock: Arc<dyn Clock>,
        untrusted: UntrustedPredecessor,
        step_down_budget: Duration,
    ) -> Self {
        Self { shared, status, clock, untrusted, step_down_budget, turn: Mutex::new(()) }
    }

    /// Waits until the lease is ours, the takeover confirmed, and the fence open.
    ///
    /// A hold-back is waited out. After a takeover from something that cannot be believed, what
    /// [`LeaseBuilder::untrusted_predecessor`] says is done: by default it is abandoned, and tried
    /// again after T. A service that has to restore its state first uses
    /// [`take_over`](Self::take_over).
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the lease can never be ours: the manager was stopped, or the store refused.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the lease is not wanted any more; one that was acquired meanwhile
    /// is released.
    pub async fn acquire(&self) -> Result<Tenure, AcquireError> {
        loop {
            let mut tenure = self.take_over().await?;
            if !tenure.predecessor().is_trusted() && self.untrusted == UntrustedPredecessor::Abandon
            {
                tenure.give_up(Abandon::UntrustedPredecessor).await;
                continue;
            }
            // Until it is confirmed, dropping the future gives it back.
            tenure.release_on_drop(true);
            let confirmed = tokio::select! {
                confirmed = tenure.confirm() => confirmed.is_ok(),
                () = self.shared.stopping.cancelled() => return Err(AcquireError::Stopped),
            };
            if confirmed {
                tenure.release_on_drop(false);
                return Ok(tenure);
            }
        }
    }

    /// Waits until the lease is ours and returns the tenure unconfirmed, its fence still shut:
    /// restore the application's state, then [`Tenure::confirm`], or [`Tenure::abandon`].
    ///
    /// The lease is renewed meanwhile, up to [`LeaseBuilder::takeover_budget`]. Look at
    /// [`Tenure::predecessor`] first.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn take_over(&self) -> Result<Tenure, AcquireError> {
        let _turn = self.turn.lock().await;
        let wanting = Wanting::new(&self.shared);
        loop {
            // Registered before the look, so that no offer is missed between the two.
            let offered = self.shared.offered.notified();
            if let Some(state) = self.shared.take_offer() {
                drop(wanting);
                return Ok(Tenure::new(state, Arc::clone(&self.shared), self.step_down_budget));
            }
            if self.shared.stopping.is_cancelled() {
                return Err(AcquireError::Stopped);
            }
            tokio::select! {
                () = offered => {}
                () = self.shared.stopping.cancelled() => {}
                () = self.shared.gone.cancelled() => return Err(self.why_gone()),
            }
        }
    }

    /// Acquires the lease again and again, and runs `work` under each tenure, until the manager is
    /// stopped or the store refuses.
    ///
    /// `work` gets the tenure; it must stop when [`Tenure::lost`] is cancelled. When it returns, the
    /// tenure ends: the lease is released (or, if it overran or panicked, lapses), and is acquired
    /// again. How each tenure ended is in the log and in [`events`](Self::events).
    ///
    /// # Errors
    ///
    /// [`AcquireError::StoreRefused`]. A stop is no error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped where it stands, and the lease lapses.
    pub async fn run_while_active<F, Fut>(&self, mut work: F) -> Result<(), AcquireError>
    where
        F: FnMut(Arc<Tenure>) -> Fut,
        Fut: Future<Output = ()>,
    {
        loop {
            let tenure = match self.acquire().await {
                Ok(tenure) => Arc::new(tenure),
                Err(AcquireError::Stopped) => return Ok(()),
                Err(refused) => return Err(refused),
            };
            let epoch = tenure.epoch();
            let ran = tenure.guard(work(Arc::clone(&tenure)).map(Ok::<(), Infallible>));
            match ran.await {
                Ok(()) | Err(RunError::Lost { .. }) => {}
                Err(error) => tracing::error!(%epoch, %error, "the work did not end well"),
            }
        }
    }

    /// What this instance is doing right now, as a channel that shows every change.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// The events from now on. Each caller has a stream of its own.
    ///
    /// What happened between the start and this call is not in it: ask for the stream first, then
    /// look at [`status`](Self::status).
    #[must_use]
    pub fn events(&self) -> EventStream {
        EventStream::new(self.shared.events.subscribe())
    }

    /// The clock that deadlines in [`Status`] are told by.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The instance directory, to read and raise the high-water marks of snapshots in it. `None` for
    /// a manager without one, and for one that has ended.
    ///
    /// Keep it no longer than the manager: it is what keeps another process out.
    #[must_use]
    pub fn instance_dir(&self) -> Option<Arc<InstanceDir>> {
        self.shared.history()
    }

    /// Stops gracefully: work is told to end, the lease is released once it has, and the manager is
    /// done. Work that does not end within [`LeaseBuilder::step_down_budget`] is not waited for any
    /// longer; its fence is shut and the lease lapses.
    ///
    /// # Cancel safety
    ///
    /// The stop goes on if the future is dropped, as long as the manager lives.
    pub async fn stop(&self) {
        self.shared.stopping.cancel();
        let mut status = self.status.clone();
        let idle = status.wait_for(|status| status.epoch.is_none());
        // Twice the budget: `Tenure::run` needs the first for the work, the release comes after it.
        let limit = self.step_down_budget.saturating_mul(2);
        let ended = tokio::select! {
            ended = tokio::time::timeout(limit, idle) => ended.is_ok(),
            () = self.shared.gone.cancelled() => true,
        };
        if ended {
            self.shared.stop();
        } else {
            // Something still acts under the tenure: a release would say that nothing does.
            self.shared.abort.cancel();
        }
        self.shared.gone.cancelled().await;
    }

    fn why_gone(&self) -> AcquireError {
        match self.status.borrow().role {
            Role::Refused => AcquireError::StoreRefused,
            _ => AcquireError::Stopped,
        }
    }
}

impl Drop for LeaseManager {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
        self.shared.abort.cancel();
    }
}

/// The lease is wanted as long as this lives; an offer that came too late is given back.
struct Wanting<'a>(&'a Shared);

impl<'a> Wanting<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.want(true);
        Self(shared)
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.want(false);
        if let Some(state) = self.0.take_offer() {
            if state.phase() == Phase::TakingOver {
                state.set_wish(super::shared::Wish::Release);
            }
            self.0.wake.notify_one();
        }
    }
}
