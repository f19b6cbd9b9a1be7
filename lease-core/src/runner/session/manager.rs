//! The handle of a service on its session.

use super::{
    super::status::EventStream,
    builder::SessionBuilder,
    error::NamedAcquireError,
    shared::{Acquired, Command, Left, Refusal, Shared},
    status::{NameWatch, SessionStatus},
    tenure::NamedTenure,
};
use crate::{
    ObjectKey,
    key::{ClusterName, InstanceId, LeaseName, NameError},
    session::Event,
    store::LeaseStore,
    timing::Timing,
};
use std::sync::Arc;
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Renews one session in the background, and acquires any number of named leases under it.
///
/// One manager serves one process. Dropping it ends everything at once: every fence is shut, nothing
/// renews any more, the session and with it all leases lapse. [`stop`](Self::stop) does it gracefully.
///
/// ```
/// use lease_core::{Timing, runner::SessionManager, testing::MemoryStore};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = tempfile::tempdir()?;
/// # let instance_dir = scratch.path().join("instance");
/// let session = SessionManager::builder(MemoryStore::new(), "orders")
///     .timing(Timing::new(Duration::from_secs(30), Duration::from_secs(10))?)
///     .instance_dir(instance_dir)
///     .start()
///     .await?;
///
/// let mut shards = Vec::new();
/// for number in 0..64 {
///     shards.push(session.acquire(&format!("shard-{number}")).await?);    // one read, one write
/// }
/// for shard in &shards {
///     shard.fence().check()?;                         // all renewed by one write every ten seconds
/// }
/// session.stop().await;                               // one write frees them all
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SessionManager {
    shared: Arc<Shared>,
    who: Who,
    status: watch::Receiver<SessionStatus>,
    events: broadcast::WeakSender<Event>,
}

/// What a session was started as.
#[derive(Debug)]
pub(super) struct Who {
    pub(super) instance: InstanceId,
    pub(super) cluster: ClusterName,
    pub(super) timing: Timing,
}

impl SessionManager {
    /// Chooses how a session of `cluster` is held on `store`.
    ///
    /// Every instance of a cluster uses the same store, cluster name, timing, audit and secret; each has
    /// an instance directory of its own.
    pub fn builder(store: impl LeaseStore, cluster: &str) -> SessionBuilder {
        SessionBuilder::new(Arc::new(store), cluster)
    }

    pub(super) fn new(
        shared: Arc<Shared>,
        who: Who,
        status: watch::Receiver<SessionStatus>,
        events: broadcast::Sender<Event>,
    ) -> Self {
        // Weak, so that the streams end when the driver does.
        Self { shared, who, status, events: events.downgrade() }
    }

    /// Waits until the lease `name` is ours and its fence open. It waits also while the session is not
    /// live.
    ///
    /// A free lease costs one read and one write. Waiting for one that somebody holds costs a read of
    /// it and one of its holder's session per R, however many of that holder's leases are waited for
    /// ([the prices](crate::session)).
    ///
    /// # Errors
    ///
    /// [`NamedAcquireError`]: the name is none, this session holds the lease or waits for it already,
    /// it has as many as it may, or it has ended for good.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the lease is not wanted any more; one that was acquired meanwhile is
    /// released.
    pub async fn acquire(&self, name: &str) -> Result<NamedTenure, NamedAcquireError> {
        self.ask(name, true).await
    }

    /// Acquires the lease `name` if it is free now.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`NamedAcquireError::Denied`] if somebody holds it, and
    /// [`WishError::NotLive`](crate::session::WishError::NotLive) if the session has not begun or its
    /// deadline has passed.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, name: &str) -> Result<NamedTenure, NamedAcquireError> {
        self.ask(name, false).await
    }

    async fn ask(&self, name: &str, wait: bool) -> Result<NamedTenure, NamedAcquireError> {
        let lease = self.key(name)?;
        if self.shared.stopping.is_cancelled() {
            return Err(NamedAcquireError::Stopped);
        }
        let (answer, told) = oneshot::channel();
        let ticket = self.shared.ticket();
        let command = Command::Acquire { lease: lease.clone(), ticket, wait, answer };
        // The channel is short: whoever asks for thousands at once waits here for their turn.
        self.shared.commands.send(command).await.map_err(|_| NamedAcquireError::Stopped)?;
        let mut asking = Asking { told: Some(told), lease, ticket, shared: &self.shared };
        let acquired = tokio::select! {
            acquired = asking.told() => acquired,
            () = self.shared.stopping.cancelled() => return Err(NamedAcquireError::Stopped),
            () = self.shared.gone.cancelled() => return Err(NamedAcquireError::Stopped),
        };
        asking.told = None;
        match acquired {
            Some(Ok(named)) => {
                let shared = Arc::clone(&self.shared);
                Ok(NamedTenure::new(named, shared))
            }
            Some(Err(Refusal::Wish(refused))) => Err(refused.into()),
            Some(Err(Refusal::Denied(reason))) => {
                let lease = asking.lease.clone();
                Err(NamedAcquireError::Denied { lease, reason })
            }
            None => Err(NamedAcquireError::Stopped),
        }
    }

    /// Watches what stands under `name`, without asking for it: at most one conditional read per R.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), but that it may be held, wanted and watched at once.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is watched.
    pub async fn watch(&self, name: &str) -> Result<NameWatch, NamedAcquireError> {
        let lease = self.key(name)?;
        let (answer, told) = oneshot::channel();
        let command = Command::Watch { lease: lease.clone(), answer };
        self.shared.commands.send(command).await.map_err(|_| NamedAcquireError::Stopped)?;
        let seen = told.await.map_err(|_| NamedAcquireError::Stopped)??;
        Ok(NameWatch { lease, seen, is_first: true, shared: Arc::clone(&self.shared) })
    }

    /// What the session is doing right now, as a channel that shows every change.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<SessionStatus> {
        self.status.clone()
    }

    /// The events from now on. Each caller has a stream of its own.
    #[must_use]
    pub fn events(&self) -> EventStream<Event> {
        let receiver = match self.events.upgrade() {
            Some(sender) => sender.subscribe(),
            // The driver is gone: a stream that has ended.
            None => broadcast::Sender::new(1).subscribe(),
        };
        EventStream::new(receiver)
    }

    /// Who this process is.
    #[must_use]
    pub const fn instance(&self) -> &InstanceId {
        &self.who.instance
    }

    /// T, R and the rest, of the session and so of every lease under it.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.who.timing
    }

    /// Cancelled when the manager is being stopped, or dropped.
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// Cancelled when nothing will happen any more, whatever ended it.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.shared.gone
    }

    /// Where the lease `name` is kept.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name is none that a lease can have.
    pub fn key(&self, name: &str) -> Result<ObjectKey, NameError> {
        Ok(self.who.cluster.named_lease_key(&LeaseName::new(name)?))
    }

    /// Stops gracefully: work is told to end; once every tenure has been released or has lapsed, one
    /// write ends the session. Work that does not end within [`SessionBuilder::step_down_budget`] is not
    /// waited for any longer; every fence is shut, and the session lapses.
    ///
    /// # Cancel safety
    ///
    /// The stop goes on if the future is dropped, as long as the manager lives.
    pub async fn stop(&self) {
        self.shared.stopping.cancel();
        self.shared.wake.notify_one();
        let mut status = self.status.clone();
        let idle = status.wait_for(|status| status.held == 0);
        // Twice the budget: `NamedTenure::run` needs the first for the work, releases come after it.
        let limit = self.shared.step_down_budget.saturating_mul(2);
        let ended = tokio::select! {
            ended = tokio::time::timeout(limit, idle) => ended.is_ok(),
            () = self.shared.gone.cancelled() => true,
        };
        if ended {
            self.shared.stop();
        } else {
            // Something still acts under a lease: a release would say that nothing does.
            self.shared.abort.cancel();
        }
        self.shared.gone.cancelled().await;
    }
}

impl Drop for SessionManager {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
        self.shared.abort.cancel();
    }
}

/// An acquisition is waited for as long as this lives.
struct Asking<'a> {
    told: Option<oneshot::Receiver<Acquired>>,
    lease: ObjectKey,
    ticket: u64,
    shared: &'a Shared,
}

impl Asking<'_> {
    async fn told(&mut self) -> Option<Acquired> {
        self.told.as_mut()?.await.ok()
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(mut told) = self.told.take() else { return };
        told.close();
        match told.try_recv() {
            // It came, and nobody has seen its fence: nothing acts under it.
            Ok(Ok(named)) => {
                named.leave(super::shared::Wish::Release);
                self.shared.leave(Left::Tenure(named));
            }
            Ok(Err(_)) => {}
            Err(_) => {
                let (lease, ticket) = (self.lease.clone(), self.ticket);
                self.shared.leave(Left::Acquisition { lease, ticket });
            }
        }
    }
}
