//! What goes in and out of the machine of a session.

use super::facts::{NamedDraft, NamedFacts, SessionDraft, SessionFacts};
use crate::{
    ObjectKey,
    auth::Verdict,
    key::InstanceId,
    machine::{FenceOrder, Note, RequestId},
    store::{StoreErrorKind, Version},
};
use fencing::{Epoch, Reading};
use std::{sync::Arc, time::Duration};

/// What the machine wants done. Carry each out in the order given, without waiting for the answer
/// of one before the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Open, extend or shut the fence of the session's life `epoch`. [`FenceOrder::Open`] comes first,
    /// and once: make the fence then. If it refuses, say so with
    /// [`handle_fence_shut`](super::SessionMachine::handle_fence_shut).
    Fence {
        /// The epoch of the life.
        epoch: Epoch,
        /// What to do with its fence.
        order: FenceOrder,
    },
    /// The answer of this request counts for nothing any more; drop it if that is easy.
    Forget(RequestId),
    /// Open, extend or shut the fence of the tenure `epoch` of a lease. [`LeaseFenceOrder::Open`]
    /// comes first, and once: make it then, under the fence of the session
    /// ([`FenceControl::under`](fencing::FenceControl::under)). If it refuses, say so with
    /// [`handle_lease_fence_shut`](super::SessionMachine::handle_lease_fence_shut).
    LeaseFence {
        /// The lease.
        lease: ObjectKey,
        /// The epoch of its tenure.
        epoch: Epoch,
        /// What to do with its fence.
        order: LeaseFenceOrder,
    },
    /// Put a note about the session into the history; answer with
    /// [`handle_persisted`](super::SessionMachine::handle_persisted) once it is on disk.
    Persist(RequestId, Note),
    /// Send a request to the store; answer with [`handle_reply`](super::SessionMachine::handle_reply).
    Send {
        /// Names the request.
        id: RequestId,
        /// What it is about.
        object: Object,
        /// What to ask.
        request: Request,
    },
}

/// What to do with the fence of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LeaseFenceOrder {
    /// With audit: move its own deadline to `window` after `sent`.
    Extend {
        /// When the read that showed the lease was sent.
        sent: Reading,
        /// A + R.
        window: Duration,
    },
    /// Open it under the fence of the session.
    Open {
        /// When the write or read that proves the lease was sent.
        sent: Reading,
        /// Until when it is open by itself: A + R with audit, [`Duration::MAX`] (for ever, as long as
        /// the session is) without.
        window: Duration,
    },
    /// Shut it for good.
    Shut,
}

/// An object in the store that a session reads and writes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Object {
    /// The named lease with this key.
    Lease(ObjectKey),
    /// The session of this instance, one's own or another's.
    Session(InstanceId),
}

/// One request to the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Request {
    /// Create the object if it is absent.
    Create(Draft),
    /// Read it; with a version, it may be answered by [`Sighting::NotModified`].
    Read {
        /// The version that is known already.
        unless: Option<Version>,
    },
    /// Replace it if it still has this version.
    Replace(Draft, Version),
}

/// A record to be written: what the machine decides of it. Whoever sends it adds what never changes
/// (cluster, the writer's ttl) and authenticates it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Draft {
    /// Of a named lease.
    Lease(NamedDraft),
    /// Of a session: one's own, or the end of another's.
    Session(SessionDraft),
}

/// What a read found, judged.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Sighting<F> {
    /// An object is there.
    Found {
        /// Its version.
        version: Version,
        /// Whether what it says can be believed.
        verdict: Verdict,
        /// What it says, if it can be read at all.
        facts: Option<Arc<F>>,
        /// How old the version is on the store's own one clock, where it tells.
        age: Option<Duration>,
    },
    /// There is none.
    Missing,
    /// It still has the version that was asked about.
    NotModified,
}

/// The answer to a request. A read of something that is no record of its kind is a
/// [`Sighting::Found`] of [`Verdict::Unreadable`], not a failure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// The request failed.
    Failed(StoreErrorKind),
    /// A read of an [`Object::Lease`] was answered.
    Lease(Sighting<NamedFacts>),
    /// A read of an [`Object::Session`] was answered.
    Session(Sighting<SessionFacts>),
    /// A write succeeded and made this version.
    Written(Version),
}
