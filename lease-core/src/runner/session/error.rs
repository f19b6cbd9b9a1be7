//! What can go wrong between a service and its session.

use crate::{
    ObjectKey,
    key::NameError,
    session::{DenyReason, LeaseEndReason, WishError},
};
use fencing::Epoch;

/// A named lease was not acquired.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamedAcquireError {
    /// [`try_acquire`](super::SessionManager::try_acquire) did not get it; or the lease can never be
    /// ours.
    #[error("lease {lease} was not acquired: {reason}")]
    Denied {
        /// Which.
        lease: ObjectKey,
        /// Why not.
        reason: DenyReason,
    },
    /// The name is none that a lease can have.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The session refused the wish.
    #[error(transparent)]
    Refused(#[from] WishError),
    /// The manager was stopped, its store refused conditional writes, or its runtime was shut down.
    #[error("the session has ended for good; start a new one to acquire leases again")]
    Stopped,
}

/// The tenure of a named lease is over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tenure of {lease} under epoch {epoch} is over: {reason}")]
#[non_exhaustive]
pub struct NamedTenureEnded {
    /// Which lease.
    pub lease: ObjectKey,
    /// Under which epoch it was held.
    pub epoch: Epoch,
    /// Why.
    pub reason: LeaseEndReason,
}

/// Work under a named lease did not come to its own end with the lease still held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamedRunError<T, E> {
    /// The tenure ended while the work ran; the work was told, and came to this end.
    #[error("{ended}; the work was told and stopped")]
    Lost {
        /// The end of the tenure.
        ended: NamedTenureEnded,
        /// What the work returned. It may not have noticed.
        work: Result<T, E>,
    },
    /// The work did not stop within its budget after it was told to. It was dropped where it stood;
    /// something that it started may still run, so the lease is freed only T later.
    #[error(
        "the work under {lease}, epoch {epoch}, did not stop within its budget and was dropped; the \
         lease is freed a ttl later"
    )]
    Overran {
        /// Which lease.
        lease: ObjectKey,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// The work panicked. The lease is freed only T later.
    #[error("the work under {lease}, epoch {epoch}, panicked: {message}")]
    Panicked {
        /// Which lease.
        lease: ObjectKey,
        /// Under which epoch.
        epoch: Epoch,
        /// What it said.
        message: String,
    },
    /// The work ended with an error of its own; the lease was released.
    #[error("the work ended with an error, and the lease was released")]
    Work(E),
}
