//! What the machine of a session writes and reads, without bytes.

use crate::{
    key::InstanceId,
    machine::{Draft, Facts},
    record::Nonce,
};
use fencing::Epoch;

/// One life of a session: the epoch of its tenure, and what tells it from any other of that epoch.
///
/// Lives of one session are ordered by epoch. Two of one epoch and different nonces are not the same
/// life, and neither is later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Life {
    /// The epoch of the session's tenure.
    pub epoch: Epoch,
    /// Drawn when the life began.
    pub nonce: Nonce,
}

/// What a session object says of the life that it names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SessionState {
    /// It is renewed, and still held back: it frees nothing of an earlier life.
    HeldBack,
    /// Somebody ended it after its holder had been silent for W.
    Killed,
    /// It is renewed.
    Live,
    /// Its holder ended it.
    Released,
    /// The object was missing; somebody put this there so that the holder's next renewal fails.
    Tombstone,
}

/// A session object to be written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SessionDraft {
    /// As for a lease: `held` while it is renewed, the epoch of the life, one nonce for each write.
    pub lease: Draft,
    /// What the life is known by.
    pub life: Nonce,
    /// What it says of that life.
    pub state: SessionState,
}

/// A named lease to be written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedDraft {
    /// As for a lease: `held` unless it is a release; the epoch is the lease's own fencing token.
    pub lease: Draft,
    /// Whose session it is held under.
    pub session: InstanceId,
    /// Which life of that session.
    pub life: Life,
    /// It was taken held back (with audit), and whoever takes it from there holds back as well: the
    /// question whether somebody from before still acts must not get lost with this holder.
    pub held_back: bool,
}

/// What the machine looks at in a session object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SessionFacts {
    /// As for a lease; the epoch is that of the life.
    pub lease: Facts,
    /// What the life is known by.
    pub life: Nonce,
    /// What the object says of it.
    pub state: SessionState,
}

/// What the machine looks at in a named lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedFacts {
    /// As for a lease; the epoch is the lease's own.
    pub lease: Facts,
    /// Whose session it is held under.
    pub session: InstanceId,
    /// Which life of that session.
    pub life: Life,
    /// Whoever takes it from there holds back, as its holder did.
    pub held_back: bool,
}
