//! What an instance is doing right now, and what happened: for health pages, logs and tests.

use crate::machine::{Event, LeaseSeen, Role, WaitReason, Waiting};
use fencing::{Epoch, MonotonicTime};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::broadcast;

/// What an instance is doing right now. Watched through
/// [`LeaseManager::status`](super::LeaseManager::status).
///
/// ```
/// # use lease_core::{runner::LeaseManager, testing::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lease = LeaseManager::builder(MemoryStore::new(), "orders").ephemeral_instance().start().await?;
/// let mut watch = lease.status();
/// watch.wait_for(|status| status.lease.is_some()).await?;         // the first read has come back
/// let status = watch.borrow().clone();
/// let now = lease.clock().monotonic();
/// assert_eq!(status.sentence(now), "standby; the lease is missing");
/// assert!(status.time_to_deadline(now).is_zero());                // it holds nothing
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Standby, taking over, active, …
    pub role: Role,
    /// The epoch of the current tenure.
    pub epoch: Option<Epoch>,
    /// Until when the current tenure is proved, by the manager's clock (half-open).
    pub deadline: Option<MonotonicTime>,
    /// What a standby saw of the lease last.
    pub lease: Option<LeaseSeen>,
    /// How close behind the holder's renewals this standby reads, once it has found their phase.
    pub phase: Option<Duration>,
    /// What is being waited for, and until when.
    pub waiting: Option<Waiting>,
    /// What went wrong last, if nothing has gone well since.
    pub last_error: Option<Arc<str>>,
}

impl Status {
    pub(super) const fn new() -> Self {
        Self {
            role: Role::Standby,
            epoch: None,
            deadline: None,
            lease: None,
            phase: None,
            waiting: Some(Waiting { reason: WaitReason::Store, until: None }),
            last_error: None,
        }
    }

    /// How long the tenure is still proved at `now`; zero without one.
    #[must_use]
    pub fn time_to_deadline(&self, now: MonotonicTime) -> Duration {
        self.deadline.map_or(Duration::ZERO, |deadline| now.until(deadline))
    }

    /// The status in one sentence, with times counted from `now`.
    #[must_use]
    pub fn sentence(&self, now: MonotonicTime) -> String {
        let mut text = format!("{:?}", self.role).to_lowercase();
        if let Some(epoch) = self.epoch {
            text += &format!(" under epoch {epoch}");
        }
        if let Some(lease) = &self.lease {
            text += &format!("; the lease is {lease}");
        }
        if let Some(phase) = self.phase {
            text += &format!("; reading {phase:.1?} behind its renewals");
        }
        if let Some(waiting) = &self.waiting {
            text += &format!("; waiting for {}", waiting.reason);
            if let Some(until) = waiting.until {
                text += &format!(", {:.1?} at most from here", now.until(until));
            }
        }
        if let Some(error) = &self.last_error {
            text += &format!("; last error: {error}");
        }
        text
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.role)?;
        match self.epoch {
            Some(epoch) => write!(f, " (epoch {epoch})"),
            None => Ok(()),
        }
    }
}

/// The events of a manager, from when it was asked for. A slow reader is told how many it missed.
///
/// ```
/// # use lease_core::{runner::{LeaseManager, Delivery}, testing::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lease = LeaseManager::builder(MemoryStore::new(), "orders").ephemeral_instance().start().await?;
/// let mut events = lease.events();
/// # lease.stop().await;
/// match events.next().await {
///     Some(Delivery::Event(event)) => println!("{event:?}"),
///     Some(Delivery::Missed(count)) => println!("{count} events went by"),
///     None => println!("the manager has stopped"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EventStream<E = Event> {
    receiver: broadcast::Receiver<E>,
}

impl<E: Clone> EventStream<E> {
    pub(super) const fn new(receiver: broadcast::Receiver<E>) -> Self {
        Self { receiver }
    }

    /// The next event, or how many were missed before the next one that is still there. `None` once
    /// the manager has stopped and everything was read.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Delivery<E>> {
        match self.receiver.recv().await {
            Ok(event) => Some(Delivery::Event(event)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Delivery::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// What an [`EventStream`] yields.
///
/// After a [`Missed`](Self::Missed), look at the [`Status`]: it is never behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery<E = Event> {
    /// An event, in order.
    Event(E),
    /// So many events went by before this reader came to them.
    Missed(u64),
}
