//! What the machine of a session tells: events, and why tenures ended or wishes failed.

use super::facts::Life;
use crate::{ObjectKey, auth::Verdict, key::InstanceId, machine, store::StoreErrorKind};
use fencing::{Epoch, MonotonicTime};
use std::fmt;

/// Something happened that a person or a program may want to know.
///
/// Every tenure of a lease begins with exactly one [`Event::HeldBack`] or [`Event::Acquired`] (a
/// tenure that was held back has both) and ends with exactly one [`Event::Ended`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The lease is held and its fence was told to open.
    Acquired {
        /// Which.
        lease: ObjectKey,
        /// Its own epoch: the fencing token.
        epoch: Epoch,
    },
    /// [`try_acquire`](super::SessionMachine::try_acquire) did not get it, or the wish cannot be
    /// fulfilled any more. The wish is gone.
    Denied {
        /// Which.
        lease: ObjectKey,
        /// Why.
        reason: DenyReason,
    },
    /// The tenure of a lease is over.
    Ended {
        /// Which.
        lease: ObjectKey,
        /// Its own epoch.
        epoch: Epoch,
        /// Why.
        reason: LeaseEndReason,
    },
    /// The lease is held, but its fence stays shut: it was missing, or could not be believed, and
    /// somebody may still act under it. Only with audit.
    HeldBack {
        /// Which.
        lease: ObjectKey,
        /// Its own epoch.
        epoch: Epoch,
        /// Until when.
        until: MonotonicTime,
    },
    /// This process ended a session that had been silent for W: all leases under it are free.
    Killed {
        /// Whose session.
        instance: InstanceId,
        /// The life that the kill names; it ends this one and every earlier one.
        life: Life,
    },
    /// What stands under a name that is [watched](super::SessionMachine::watch), told when it changes.
    Seen {
        /// Which.
        lease: ObjectKey,
        /// What.
        seen: NamedSeen,
    },
    /// Something happened to the session itself. Its `TakingOver` is confirmed by the machine.
    Session(machine::Event),
    /// A request failed. What follows is the machine's business.
    StoreFailed {
        /// About which object.
        object: super::Object,
        /// What was tried.
        attempted: Attempted,
        /// What is known of it.
        error: StoreErrorKind,
    },
}

/// What was tried when a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Attempted {
    /// Taking a lease.
    Acquisition,
    /// Looking whether a lease is still the one that was taken.
    Audit,
    /// Writing that a lease is not held back any more.
    HoldBackOver,
    /// Ending a session that has been silent for W.
    Kill,
    /// Reading a lease, or the session of its holder.
    Read,
    /// Giving a lease back.
    Release,
    /// Putting a tombstone where a session is missing.
    Tombstone,
}

impl fmt::Display for Attempted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquisition => "taking a lease",
            Self::Audit => "auditing a lease",
            Self::HoldBackOver => "writing that a lease is not held back any more",
            Self::Kill => "ending a silent session",
            Self::Read => "reading",
            Self::Release => "releasing a lease",
            Self::Tombstone => "putting a tombstone in place of a missing session",
        })
    }
}

/// What stands under a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NamedSeen {
    /// Somebody holds it.
    Held {
        /// Who.
        holder: InstanceId,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Nobody has ever held it, or it was deleted.
    Missing,
    /// The session that it was held under has ended, or has been silent for W.
    Orphaned {
        /// Who held it.
        holder: InstanceId,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// Its last holder gave it back.
    Released {
        /// The epoch of that holder.
        epoch: Epoch,
    },
    /// What is there cannot be believed.
    Untrusted {
        /// Why not.
        verdict: Verdict,
    },
}

impl NamedSeen {
    /// Whether somebody who wants it could take it now.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        matches!(self, Self::Missing | Self::Orphaned { .. } | Self::Released { .. })
    }
}

impl fmt::Display for NamedSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { holder, epoch } => write!(f, "held by {holder} under epoch {epoch}"),
            Self::Missing => f.write_str("missing"),
            Self::Orphaned { holder, epoch } => {
                write!(f, "left behind by {holder} under epoch {epoch}")
            }
            Self::Released { epoch } => write!(f, "released after epoch {epoch}"),
            Self::Untrusted { verdict } => write!(f, "not to be believed ({verdict:?})"),
        }
    }
}

/// Why a wish was not fulfilled.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DenyReason {
    /// No epoch is left above the one that stands there.
    EpochsExhausted,
    /// Somebody holds it, and that session lives (or is not shown to have ended).
    Held {
        /// Who.
        holder: InstanceId,
    },
    /// This process released it less than 2R ago and lets others have it.
    KeptOut,
    /// The session ended before it could be taken.
    SessionEnded,
    /// The session was stopped.
    Stopped,
    /// The store failed, or did not answer in time.
    Store(StoreErrorKind),
    /// What stands there cannot be believed, and has to be waited out.
    Untrusted {
        /// Why not.
        verdict: Verdict,
    },
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EpochsExhausted => f.write_str("no epoch is left under this name"),
            Self::Held { holder } => write!(f, "{holder} holds it"),
            Self::KeptOut => f.write_str("this session released it a moment ago"),
            Self::SessionEnded => f.write_str("the session ended before it was taken"),
            Self::Stopped => f.write_str("the session was stopped"),
            Self::Store(error) => write!(f, "the store failed ({error:?})"),
            Self::Untrusted { verdict } => {
                write!(f, "what stands there cannot be believed ({verdict:?})")
            }
        }
    }
}

/// Why the tenure of a lease ended. Each tenure ends once, for one reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LeaseEndReason {
    /// With audit: no read showed the lease in time.
    AuditOverdue,
    /// With audit: the lease object is gone.
    Deleted,
    /// The fence of the lease refused to open or to stay open.
    FenceShut,
    /// It was given back, and the store confirmed that.
    Released,
    /// Something else stands in its place: another wrote it, which only a hand or a fault does.
    Replaced {
        /// Who is said to hold it, if what stands there can be believed and says so.
        by: Option<InstanceId>,
        /// Whether it can be believed.
        verdict: Option<Verdict>,
    },
    /// The session that it was held under has ended.
    Session(machine::EndReason),
}

impl fmt::Display for LeaseEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AuditOverdue => f.write_str("no read showed the lease in time"),
            Self::Deleted => f.write_str("the lease object was deleted"),
            Self::FenceShut => f.write_str("its fence was found shut"),
            Self::Released => f.write_str("released"),
            Self::Replaced { by: Some(by), .. } => write!(f, "the lease was replaced by {by}"),
            Self::Replaced { by: None, .. } => f.write_str("the lease was replaced"),
            Self::Session(reason) => write!(f, "its session ended: {reason}"),
        }
    }
}
