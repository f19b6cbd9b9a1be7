//! Why a store is refused, or could not be probed.

use crate::{
    key::NameError,
    store::{Cause, StoreError},
};
use std::fmt;

/// The store did not pass the probe.
///
/// ```
/// use lease_core::{ObjectKey, StoreErrorKind, probe::{ProbeStep, probe}};
/// use lease_core::testing::{Fault, FaultStore, MemoryStore, Op};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// // A store that takes a second create for a success.
/// let store = FaultStore::new(MemoryStore::new());
/// store.faults().next(Op::Create, Fault::Pass);
/// store.faults().next(Op::Create, Fault::Fail(StoreErrorKind::Unsupported));
/// let error = probe(&store, &ObjectKey::new("orders/lease.json")?).await.unwrap_err();
/// let refusal = error.refusal().expect("not an outage");
/// assert_eq!(refusal.step, ProbeStep::CreateExisting);
/// println!("{error}");                            // what was tried, what came back, what to do
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The store could not be probed: it could not be reached, or an answer left a write in doubt.
    /// That says nothing about its conditions. It must not be used yet, but may be probed again.
    #[error(
        "the store could not be probed: {step} failed; it is not used until a probe succeeds, \
         probe it again"
    )]
    Inconclusive {
        /// What was being tried.
        step: ProbeStep,
        /// How it failed.
        source: StoreError,
    },
    /// No key for the probe's objects fits beside the lease's.
    #[error("the store was not probed: no key for a probe object; shorten the key of the lease")]
    Key(#[from] NameError),
    /// The operating system gave no random bytes for the probe's keys.
    #[error("the store was not probed: no random bytes for the key of a probe object")]
    Random(#[from] getrandom::Error),
    /// The conditions of the store do not hold. Probing it again is no use, unless the store, its
    /// configuration, or what stands before it has changed.
    #[error("the store is refused: {0}")]
    Refused(Refusal),
}

impl ProbeError {
    /// The refusal, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// As a driver reports it that probes on its own: a refusal is [`StoreError::Unsupported`], anything
/// else is what came from the store, or [`StoreError::Unavailable`].
impl From<ProbeError> for StoreError {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Inconclusive { source, .. } => source,
            ProbeError::Refused(refusal) => Self::Unsupported(Cause::new(refusal.to_string())),
            other => Self::Unavailable(Cause::with_source("probing the store", other)),
        }
    }
}

/// What the store did that a lease cannot live with.
///
/// As text: what was tried, what came back, what that means and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// What was tried.
    pub step: ProbeStep,
    /// What came back, for people.
    pub found: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. {}", self.step, self.found, self.step.advice())
    }
}

/// What the probe tries, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProbeStep {
    /// Creating an object that is missing, and reading it back.
    CreateMissing,
    /// Creating an object that exists.
    CreateExisting,
    /// Replacing an object by its current version, and reading it back.
    ReplaceCurrent,
    /// Replacing an object by a version that it no longer has.
    ReplaceStale,
    /// Reading an object unless it has a version that it no longer has.
    ReadUnlessStale,
    /// Replacing an object that is missing.
    ReplaceMissing,
    /// Replacing one version of an object by several writers at once.
    RaceReplaces,
    /// Creating one object by several writers at once.
    RaceCreates,
}

impl ProbeStep {
    fn advice(self) -> &'static str {
        match self {
            Self::CreateMissing => {
                "A lease needs a store that creates an object and shows it at once, under the \
                 version that the write returned: check the permissions, and what stands between \
                 (caches, compression)"
            }
            Self::CreateExisting => {
                "Two instances could both create the lease: `If-None-Match: *` is ignored by the \
                 store or lost on the way to it (proxies, versioned buckets); use a store that \
                 honours it"
            }
            Self::ReplaceCurrent => {
                "A holder could not renew: the store does not recognise the versions that it tells \
                 itself (quoted, weak or rewritten ETags); remove what rewrites them, or use \
                 another store"
            }
            Self::ReplaceStale => {
                "Two instances could hold the lease at once: `If-Match` is ignored by the store or \
                 lost on the way to it; use a store that honours it"
            }
            Self::ReadUnlessStale => {
                "A standby would never see a renewal: conditional reads are answered from \
                 something that is out of date; remove the cache before the store"
            }
            Self::ReplaceMissing => {
                "A lease that was deleted would be written again by its old holder: `If-Match` is \
                 ignored where there is no object; use a store that honours it"
            }
            Self::RaceReplaces | Self::RaceCreates => {
                "The store compares and writes in two steps (or its reads are out of date), so \
                 that several instances could hold the lease at once; use a store whose \
                 conditional writes are atomic"
            }
        }
    }
}

impl fmt::Display for ProbeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateMissing => "creating an object that is missing and reading it back",
            Self::CreateExisting => "creating an object that exists",
            Self::ReplaceCurrent => "replacing the current version of an object",
            Self::ReplaceStale => "replacing a version that the object no longer has",
            Self::ReadUnlessStale => "reading an object unless it has an old version",
            Self::ReplaceMissing => "replacing an object that is missing",
            Self::RaceReplaces => "replacing one version of an object by 16 writers at once",
            Self::RaceCreates => "creating one object by 16 writers at once",
        })
    }
}
