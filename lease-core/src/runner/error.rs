//! What can go wrong between a service and its lease manager.

use crate::{
    history::InstanceDirError,
    key::NameError,
    machine::EndReason,
    probe::ProbeError,
    record::{LabelError, TtlError},
    session::AuditTooShort,
    store::StoreError,
};
use fencing::Epoch;

/// A manager did not start. Nothing was written to the lease.
///
/// Its text says what to change. Of these only [`Store`](Self::Store),
/// [`StoreSilent`](Self::StoreSilent) and a [`Probe`](Self::Probe) that was inconclusive may pass
/// by themselves: there it makes sense to try again.
///
/// ```
/// use lease_core::{LeaseManager, runner::StartError, testing::MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = LeaseManager::builder(MemoryStore::new(), "orders").start().await.unwrap_err();
/// assert!(matches!(error, StartError::NoInstanceDir));
/// assert!(error.to_string().contains("give one with `instance_dir`"));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The audit of a session is too short.
    #[error(transparent)]
    Audit(#[from] AuditTooShort),
    /// A choice that has no place without an instance directory.
    #[error(
        "{choice} needs an instance directory, since it is decided by what this instance remembers; \
         give one with `instance_dir`, or leave the choice out"
    )]
    ChoiceNeedsInstanceDir {
        /// The choice.
        choice: &'static str,
    },
    /// The lease was written under another secret than this instance's.
    #[error(
        "the lease of cluster {cluster} was written with the secret {theirs:?}, this instance has \
         {ours:?} (ids, not the secrets): it could neither believe the others nor be believed; give \
         every instance of the cluster the same secret"
    )]
    ForeignSecret {
        /// The cluster.
        cluster: String,
        /// The key id of this instance's secret.
        ours: String,
        /// The key id that the lease names.
        theirs: String,
    },
    /// The instance directory cannot be used.
    #[error(transparent)]
    InstanceDir(#[from] InstanceDirError),
    /// The label of this instance cannot be written into a record.
    #[error("the instance's name cannot be used: {0}")]
    InstanceName(#[from] LabelError),
    /// A name breaks the rules.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Neither an instance directory nor `ephemeral_instance` was chosen.
    #[error(
        "no instance directory: give one with `instance_dir`, a directory of this instance alone \
         that survives restarts, or say `ephemeral_instance` if nothing needs to be remembered"
    )]
    NoInstanceDir,
    /// Something that the manager needs of the operating system is not to be had.
    #[error("the operating system gave no {what}")]
    Platform {
        /// What it is.
        what: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The store was refused, or could not be probed.
    #[error("the store cannot be used for a lease: {0}")]
    Probe(#[from] ProbeError),
    /// The lease could not be read.
    #[error("the lease {key} could not be read when the manager started: {source}")]
    Store {
        /// Where the lease is.
        key: String,
        /// What the store said.
        source: StoreError,
    },
    /// The store did not answer in time when the manager started.
    #[error("the store did not answer within {limit:?} when the manager started: is it reachable?")]
    StoreSilent {
        /// How long was waited.
        limit: std::time::Duration,
    },
    /// The ttl cannot be written into a record.
    #[error(transparent)]
    Ttl(#[from] TtlError),
}

/// The lease will not be acquired any more.
///
/// Both are final for this manager. A store that merely cannot be reached is none of them:
/// acquiring waits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The store refused conditional writes for good.
    #[error("the store refused conditional writes: no lease can be held on it")]
    StoreRefused,
    /// The manager was stopped, or its runtime was shut down.
    #[error("the lease manager was stopped; start a new one to acquire the lease again")]
    Stopped,
}

/// A tenure that was needed is over.
///
/// Acquire again if the work is still to be done; look at the [reason](Self::reason) first if it
/// may be of one's own making, as [`EndReason::Suspended`] on a starved runtime is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tenure of epoch {epoch} is over: {reason}")]
#[non_exhaustive]
pub struct TenureEnded {
    /// Which one.
    pub epoch: Epoch,
    /// Why.
    pub reason: EndReason,
}

/// Work under a tenure did not come to its own end with the lease still held.
///
/// ```
/// use lease_core::runner::RunError;
///
/// fn went_well<T, E: std::fmt::Display>(result: Result<T, RunError<T, E>>) -> bool {
///     match result {
///         Ok(_) => true,
///         Err(RunError::Work(error)) => { println!("the work itself failed: {error}"); false }
///         Err(RunError::Lost { ended, work }) => {
///             // What it did last may have been refused by the gate; its result is still there.
///             println!("{ended}; the work had come to {}", if work.is_ok() { "its end" } else { "an error" });
///             false
///         }
///         Err(other) => { println!("{other}"); false }    // overran or panicked: something may still run
///     }
/// }
/// # assert!(went_well(Ok::<_, RunError<(), std::fmt::Error>>(())));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<T, E> {
    /// The tenure ended while the work ran; the work was told, and came to this end.
    #[error("{ended}; the work was told and stopped")]
    Lost {
        /// The end of the tenure.
        ended: TenureEnded,
        /// What the work returned. It may not have noticed.
        work: Result<T, E>,
    },
    /// The work did not stop within its budget after it was told to. It was dropped where it
    /// stood; the lease was not released but lapses, since something it started may still run.
    #[error("{ended}; the work did not stop within its budget and was dropped")]
    Overran {
        /// The end of the tenure.
        ended: TenureEnded,
    },
    /// The work panicked. The lease lapses.
    #[error("the work under epoch {epoch} panicked: {message}")]
    Panicked {
        /// The tenure.
        epoch: Epoch,
        /// What it said.
        message: String,
    },
    /// The work ended with an error of its own; the lease was released.
    #[error("the work ended with an error, and the lease was released")]
    Work(E),
}
