//! What goes in and out of the machine: requests and their answers, orders for the fence.

use crate::{
    auth::Verdict,
    key::InstanceId,
    record::{Nonce, SnapshotMark, TenureMark},
    store::{StoreErrorKind, Version},
};
use fencing::{Epoch, Reading, WallTime};
use std::{sync::Arc, time::Duration};

/// Names one request, so that its answer can be told from others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub(crate) u64);

/// What the machine wants done. Carry each out in the order given, without waiting for the answer
/// of one before the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Open, extend or shut the fence of the current tenure.
    Fence(FenceOrder),
    /// Ask the epoch floor; answer with [`handle_floor`](super::Machine::handle_floor).
    FetchFloor(RequestId),
    /// The answer of this request counts for nothing any more; drop it if that is easy.
    Forget(RequestId),
    /// Put a note into the history; answer with
    /// [`handle_persisted`](super::Machine::handle_persisted) once it is on disk.
    Persist(RequestId, Note),
    /// Send a request to the store; answer with [`handle_reply`](super::Machine::handle_reply).
    Send(RequestId, Request),
}

/// One request to the store, on the key of the lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Request {
    /// Create the lease if it is absent.
    Create(Draft),
    /// Read it; with a version, it may be answered by [`Sighting::NotModified`].
    Read {
        /// The version that is known already.
        unless: Option<Version>,
    },
    /// Replace it if it still has this version.
    Replace(Draft, Version),
}

/// A lease record to be written: what the machine decides of it. Whoever sends it adds what never
/// changes (cluster, instance, ttl) and authenticates it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Draft {
    /// False for a release: the holder is empty.
    pub held: bool,
    /// The epoch of the tenure.
    pub epoch: Epoch,
    /// Grows with every write of the tenure.
    pub seq: u64,
    /// What this one write is known by.
    pub nonce: Nonce,
    /// When it was sent, for people.
    pub renewed_at: WallTime,
    /// False while a takeover from an untrusted lease is not confirmed: such a lease stays unsigned.
    pub sign: bool,
    /// The newest snapshot of the cluster, carried from lease to lease.
    pub last_snapshot: Option<SnapshotMark>,
}

/// What a read found, judged.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Sighting {
    /// An object is there.
    Found {
        /// Its version.
        version: Version,
        /// Whether what it says can be believed.
        verdict: Verdict,
        /// What it says, if it can be read at all.
        facts: Option<Arc<Facts>>,
        /// How old the version is on the store's own one clock.
        age: Option<Duration>,
    },
    /// There is none.
    Missing,
    /// It still has the version that was asked about.
    NotModified,
}

/// What the machine looks at in a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Who holds the lease; nobody if it was released.
    pub holder: Option<InstanceId>,
    /// The epoch it says.
    pub epoch: Epoch,
    /// The number of the write within its tenure.
    pub seq: u64,
    /// What the write is known by; records of other origin have none.
    pub nonce: Option<Nonce>,
    /// The ttl it says.
    pub ttl: Duration,
    /// The newest snapshot it names.
    pub last_snapshot: Option<SnapshotMark>,
}

impl Facts {
    /// Facts with no snapshot named.
    #[must_use]
    pub fn new(
        holder: Option<InstanceId>,
        epoch: Epoch,
        seq: u64,
        nonce: Option<Nonce>,
        ttl: Duration,
    ) -> Self {
        Self { holder, epoch, seq, nonce, ttl, last_snapshot: None }
    }
}

/// The answer to a request: the version after a write, what a read found, or what is known of a
/// failure. A read of something that is no record is a [`Sighting::Found`] of
/// [`Verdict::Unreadable`], not a failure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// The request failed.
    Failed(StoreErrorKind),
    /// A read was answered.
    Read(Sighting),
    /// A write succeeded and made this version.
    Written(Version),
}

/// What to do with the fence of the current tenure. If the fence refuses, since it is shut already,
/// say so with [`handle_fence_shut`](super::Machine::handle_fence_shut).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FenceOrder {
    /// Move its deadline to `window` after `sent`.
    Extend {
        /// When the renewal that proves it was sent.
        sent: Reading,
        /// T − M.
        window: Duration,
    },
    /// Open it until `window` after `sent`.
    Open {
        /// When the write that proves it was sent.
        sent: Reading,
        /// T − M.
        window: Duration,
    },
    /// Shut it for good.
    Shut,
}

/// What to put into the history, on top of what stands there.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Note {
    /// The fence of this tenure is about to open: it is held and opened from now on.
    pub opened: Option<TenureMark>,
    /// A release with this nonce is about to be written.
    pub release: Option<Nonce>,
    /// An authenticated lease of the cluster was seen or written.
    pub seen_authenticated: bool,
    /// A larger ttl than any known was seen in the cluster.
    pub largest_ttl: Option<Duration>,
    /// An authentic lease named a newer snapshot than any before.
    pub newest_named_snapshot: Option<SnapshotMark>,
}

/// Where nonces come from. Fresh from the operating system at every write: two clones of one
/// process, or one restored twice, must not draw the same.
pub trait Entropy {
    /// 128 bits that nobody drew before.
    fn nonce(&mut self) -> Nonce;
}
