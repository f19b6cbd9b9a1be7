//! What a session is doing right now, and what stands under a name.

use super::shared::{Left, Shared};
use crate::{
    ObjectKey,
    machine::Role,
    session::{Life, NamedSeen},
};
use fencing::MonotonicTime;
use std::sync::Arc;
use tokio::sync::watch;

/// What a session is doing right now. Watched through
/// [`SessionManager::status`](super::SessionManager::status).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionStatus {
    /// What this process is with regard to its own session: active while leases can be held.
    pub role: Role,
    /// The life of the session, while its fence is open.
    pub life: Option<Life>,
    /// Until when the session is proved, and so every lease under it (half-open).
    pub deadline: Option<MonotonicTime>,
    /// How many leases are held with their fences open.
    pub held: usize,
    /// How many are wanted, held, watched or on their way back.
    pub leases: usize,
    /// How many sessions of others are watched.
    pub sessions_watched: usize,
    /// How many requests are under way, beside those of the session itself.
    pub in_flight: usize,
    /// What went wrong last, if nothing has gone well since.
    pub last_error: Option<Arc<str>>,
}

impl SessionStatus {
    pub(super) const fn new() -> Self {
        Self {
            role: Role::Standby,
            life: None,
            deadline: None,
            held: 0,
            leases: 0,
            sessions_watched: 0,
            in_flight: 0,
            last_error: None,
        }
    }
}

/// Watches what stands under a name, without asking for it. Dropping it ends that.
///
/// ```
/// # use lease_core::{runner::SessionManager, session::NamedSeen, testing::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session =
/// #     SessionManager::builder(MemoryStore::new(), "orders").ephemeral_instance().start().await?;
/// let mut watch = session.watch("shard-7").await?;
/// assert_eq!(watch.next().await, Some(NamedSeen::Missing));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct NameWatch {
    pub(super) lease: ObjectKey,
    pub(super) seen: watch::Receiver<Option<NamedSeen>>,
    pub(super) is_first: bool,
    pub(super) shared: Arc<Shared>,
}

impl NameWatch {
    /// Which lease, by its key in the store.
    #[must_use]
    pub fn lease(&self) -> &ObjectKey {
        &self.lease
    }

    /// What stands there, as it was seen last; `None` before the first look.
    #[must_use]
    pub fn seen(&self) -> Option<NamedSeen> {
        self.seen.borrow().clone()
    }

    /// Waits until something else stands there than what this told last; the first call tells what
    /// stands there now. `None` once the session has ended for good.
    ///
    /// Changes that follow each other closely are told as one.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<NamedSeen> {
        if std::mem::take(&mut self.is_first) {
            self.seen.mark_changed();
        }
        loop {
            self.seen.changed().await.ok()?;
            let seen = self.seen.borrow_and_update().clone();
            if seen.is_some() {
                return seen;
            }
        }
    }
}

impl Drop for NameWatch {
    fn drop(&mut self) {
        self.shared.leave(Left::Watch(self.lease.clone()));
    }
}
