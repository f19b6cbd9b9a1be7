//! What the machine tells: events, why a tenure ended, what is being waited for.

use crate::{auth::Verdict, key::InstanceId, store::StoreErrorKind};
use fencing::{Epoch, MonotonicTime};
use std::{fmt, time::Duration};

/// Something happened that a person or a program may want to know.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The fence of the tenure is open: this instance may act.
    Active {
        /// The tenure.
        epoch: Epoch,
    },
    /// A tenure is over. Exactly one for each [`Event::TakingOver`].
    Ended {
        /// The tenure.
        epoch: Epoch,
        /// Why.
        reason: EndReason,
    },
    /// No epoch is left for an acquisition. Nothing can be taken under this key any more.
    EpochsExhausted,
    /// A version that carries one's own instance id was written by somebody else: two running
    /// instances share one id, as after copying an instance directory. It is treated as foreign.
    IdentityShared {
        /// The epoch in that record.
        epoch: Epoch,
    },
    /// A new lease, or a new holder, was seen by the standby.
    LeaseSeen {
        /// What was seen.
        lease: LeaseSeen,
    },
    /// The store cannot do conditional writes, or refused them for good. The machine has stopped.
    Refused,
    /// A renewal succeeded.
    Renewed {
        /// The tenure.
        epoch: Epoch,
        /// Until when it is proved now (half-open).
        deadline: MonotonicTime,
    },
    /// A request to the store failed. What follows is the machine's business.
    StoreFailed {
        /// What was tried.
        attempted: Attempted,
        /// What is known of it.
        error: StoreErrorKind,
    },
    /// The lease is held, the fence still shut: restore, then confirm.
    TakingOver {
        /// The tenure.
        epoch: Epoch,
        /// What was there before.
        predecessor: Predecessor,
        /// The fence stays shut until then, whatever is confirmed.
        held_back_until: Option<MonotonicTime>,
    },
    /// The record of another instance says a ttl that differs from one's own. Told once for each
    /// tenure.
    TtlDiffers {
        /// One's own.
        own: Duration,
        /// The other's.
        seen: Duration,
    },
}

/// What was tried when a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Attempted {
    /// Taking the lease.
    Acquisition,
    /// Asking for the epoch floor.
    EpochFloor,
    /// Writing the history.
    History,
    /// A standby's read, or one that resolves a doubt.
    Read,
    /// Releasing the lease.
    Release,
    /// Renewing the lease.
    Renewal,
}

impl fmt::Display for Attempted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquisition => "taking the lease",
            Self::EpochFloor => "asking for the epoch floor",
            Self::History => "writing the history",
            Self::Read => "reading the lease",
            Self::Release => "releasing the lease",
            Self::Renewal => "renewing the lease",
        })
    }
}

/// What a standby saw.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LeaseSeen {
    /// Somebody holds it.
    Held {
        /// Who.
        holder: InstanceId,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// There is no lease.
    Missing,
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

impl fmt::Display for LeaseSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { holder, epoch } => write!(f, "held by {holder} under epoch {epoch}"),
            Self::Missing => f.write_str("missing"),
            Self::Released { epoch } => write!(f, "released after epoch {epoch}"),
            Self::Untrusted { verdict } => write!(f, "not to be believed ({verdict:?})"),
        }
    }
}

/// What was there before a takeover.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Predecessor {
    /// A holder that stopped renewing.
    Expired {
        /// Who it was.
        holder: InstanceId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// No lease: it was created.
    Missing,
    /// This very instance, before it was restarted.
    Reclaimed {
        /// Its epoch.
        epoch: Epoch,
    },
    /// A holder that released it.
    Released {
        /// Its epoch.
        epoch: Epoch,
    },
    /// Something that cannot be believed. Find out who wrote it before you confirm.
    Untrusted {
        /// Why not.
        verdict: Verdict,
    },
}

impl Predecessor {
    /// False if what was taken over could not be believed.
    #[must_use]
    pub const fn is_trusted(&self) -> bool {
        !matches!(self, Self::Untrusted { .. })
    }
}

/// Why a tenure ended. Each tenure ends once, for one reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EndReason {
    /// The takeover was given up before it was confirmed: by the application, because its budget
    /// was spent, or because the history could not be written.
    Abandoned(AbandonReason),
    /// The lease object was deleted.
    Deleted,
    /// The tenure was dropped, or given up while it was held back: nothing was written, the lease
    /// lapses by itself.
    Dropped,
    /// No renewal succeeded before the deadline.
    Expired,
    /// Somebody else wrote the lease; who, could not be read in time.
    Lost,
    /// It was given back, and the store confirmed that.
    Released,
    /// It was given back, but whether the store has it is not known; if not, the lease lapses.
    ReleaseInDoubt,
    /// Something that cannot be believed stands in its place.
    Replaced {
        /// Why not.
        verdict: Verdict,
    },
    /// The store cannot do conditional writes, or refused them for good.
    StoreRefused,
    /// The process did not run past its deadline, or its wall clock shows so: the machine was
    /// suspended, the process stopped or starved, or the wall clock set forward.
    Suspended,
    /// Another instance holds the lease.
    TakenOver {
        /// Who; nobody if that holder has released it since.
        by: Option<InstanceId>,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// The work that it was held for panicked, or overran its budget to stop; the lease lapses.
    WorkFailed,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abandoned(reason) => write!(f, "the takeover was abandoned: {reason}"),
            Self::Deleted => f.write_str("the lease object was deleted"),
            Self::Dropped => f.write_str("the tenure was dropped; the lease lapses by itself"),
            Self::Expired => f.write_str("no renewal succeeded before its deadline"),
            Self::Lost => f.write_str("somebody else wrote the lease"),
            Self::Released => f.write_str("released"),
            Self::ReleaseInDoubt => {
                f.write_str("released, but the store did not confirm it; at worst the lease lapses")
            }
            Self::Replaced { verdict } => {
                write!(f, "the lease was replaced by something not to be believed ({verdict:?})")
            }
            Self::StoreRefused => f.write_str("the store refused conditional writes"),
            Self::Suspended => f.write_str(
                "the process did not run past its deadline (suspended, stopped or starved), or its \
                 wall clock was set forward",
            ),
            Self::TakenOver { by: Some(by), epoch } => {
                write!(f, "taken over by {by} under epoch {epoch}")
            }
            Self::TakenOver { by: None, epoch } => {
                write!(f, "taken over under epoch {epoch}, and released since")
            }
            Self::WorkFailed => {
                f.write_str("the work panicked or did not stop in time; the lease lapses by itself")
            }
        }
    }
}

/// Why a takeover was abandoned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AbandonReason {
    /// The application could not take over, for instance because it could not restore its state.
    Application,
    /// It was not confirmed within its budget.
    BudgetSpent,
    /// Snapshots prove an epoch that is not below the one it had taken, or it could not be told
    /// within its budget whether they do. It tries again at once, under a larger epoch.
    EpochFloor,
    /// The history could not be written, or not within T.
    History,
    /// The lease it was taken over from could not be believed.
    UntrustedPredecessor,
}

impl fmt::Display for AbandonReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Application => "the application gave it up",
            Self::BudgetSpent => "it was not confirmed within its budget",
            Self::EpochFloor => {
                "its epoch is not above every epoch that snapshots prove, or that could not be told"
            }
            Self::History => "the history could not be written in time",
            Self::UntrustedPredecessor => {
                "the lease it was taken over from cannot be believed; find out who wrote it"
            }
        })
    }
}

/// What a machine is waiting for, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    /// For what.
    pub reason: WaitReason,
    /// Until when at the earliest, where that is known.
    pub until: Option<MonotonicTime>,
}

/// For what a machine is waiting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum WaitReason {
    /// The application has to confirm the takeover.
    Confirmation,
    /// The epoch floor cannot be told yet.
    EpochFloor,
    /// The lease was created, or taken from an old release: its fence stays shut for W.
    HeldBack,
    /// The holder may still renew; if it does not, the lease is taken.
    Holder,
    /// This instance gave up a takeover a moment ago.
    KeepOutAfterAbandon,
    /// This instance released the lease a moment ago and lets others have it.
    KeepOutAfterRelease,
    /// The store has to answer.
    Store,
    /// What stands there cannot be believed; it is waited out.
    UntrustedLease,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmation => "the application to confirm the takeover",
            Self::EpochFloor => "the epoch floor to be told",
            Self::HeldBack => {
                "a holder that may still act: the lease was missing, or its release may be an old one"
            }
            Self::Holder => "the holder to renew, or its lease to lapse",
            Self::KeepOutAfterAbandon => "others to try: this instance abandoned a takeover",
            Self::KeepOutAfterRelease => "others to take it: this instance released the lease",
            Self::Store => "the store to answer",
            Self::UntrustedLease => "a lease that cannot be believed to lapse",
        })
    }
}
