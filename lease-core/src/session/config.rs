//! What the machine of a session is told when it is made, and what it refuses.

use crate::{ObjectKey, key::InstanceId, machine::EpochOrigin, timing::Timing};
use fencing::Epoch;
use std::time::Duration;

/// The choices of one process. Everything in it can be compared and hashed; no key is inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who this process is.
    pub instance: InstanceId,
    /// T, R and the rest, of the session: they hold for every lease under it.
    pub timing: Timing,
    /// Where the numbers of epochs come from, of the session and of its leases.
    pub epochs: EpochOrigin,
    /// See [`Config::with_audit`].
    pub(super) audit: Option<Duration>,
    /// How many requests may be under way at once, beside those that keep the session itself; at
    /// least 1. What waits, waits in the machine's own table. Default 32.
    pub max_in_flight: usize,
    /// How many leases may be wanted, held, watched or on their way back at once. Default 100 000.
    pub max_leases: usize,
    /// How many leases that others hold are looked at per R, at most: with more of them each is
    /// looked at less often, in turn. Each is looked at once per R at most. Default 32.
    ///
    /// It is how fast a *release* of one is noticed. That its holder is gone is noticed by the one watch
    /// of that holder's session, which is not counted here.
    pub looks_per_renew: usize,
    /// Keep out of a lease for 2R after releasing it, so that a release hands over. Default yes.
    pub keep_out_after_release: bool,
    /// This process has generated its instance id just now: nobody can have held a session of that
    /// name, so the first life begins at once. Default no.
    pub fresh_instance: bool,
    /// A cluster secret is configured: unsigned records are accepted on first use only.
    pub has_secret: bool,
    /// There is a history that notes are persisted to (`Action::Persist`).
    pub has_history: bool,
    /// Spreads takeovers by up to R/10. `None`: no spread, for tests and model checkers.
    pub jitter_seed: Option<u64>,
}

impl Config {
    /// The defaults for `instance` with `timing`.
    #[must_use]
    pub fn new(instance: InstanceId, timing: Timing) -> Self {
        Self {
            instance,
            timing,
            epochs: EpochOrigin::default(),
            audit: None,
            max_in_flight: 32,
            max_leases: 100_000,
            looks_per_renew: 32,
            keep_out_after_release: true,
            fresh_instance: false,
            has_secret: false,
            has_history: false,
            jitter_seed: None,
        }
    }

    /// The same with audit: each lease that is held is read at least every `every` (A), which costs a
    /// conditional read per lease and A.
    ///
    /// It finds leases that were deleted or replaced by hand while they were held. Their fences are
    /// shut A + R after the last read that still showed them was sent, and whoever finds a lease
    /// missing, or not to be believed, holds back for A + R + W after taking it
    /// (W here at least a fifth of A + R, as a margin for clocks). **All instances of a
    /// cluster must say the same**, at most the largest A of any of them. Without audit a lease that
    /// is missing is created at once, and the token alone protects against a holder that still acts.
    ///
    /// # Errors
    ///
    /// [`AuditTooShort`] below R.
    pub fn with_audit(self, every: Duration) -> Result<Self, AuditTooShort> {
        if every < self.timing.renew() {
            return Err(AuditTooShort { every, renew: self.timing.renew() });
        }
        Ok(Self { audit: Some(every), ..self })
    }

    /// A: how often each lease that is held is read.
    #[must_use]
    pub const fn audit(&self) -> Option<Duration> {
        self.audit
    }
}

/// An audit more often than the session is renewed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "an audit every {every:?} is refused: it is at least the renew interval, {renew:?}, since its reads \
     cost one request per lease"
)]
#[non_exhaustive]
pub struct AuditTooShort {
    /// What was asked for.
    pub every: Duration,
    /// R.
    pub renew: Duration,
}

/// Why a wish was refused. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WishError {
    /// This session holds the lease already.
    #[error(
        "lease {lease} is not acquired: this session holds it already, under epoch {epoch}; share that \
         tenure, or release it first"
    )]
    AlreadyHeld {
        /// Which.
        lease: ObjectKey,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// This session waits for the lease already.
    #[error("lease {lease} is not acquired: this session waits for it already; await that one")]
    AlreadyWanted {
        /// Which.
        lease: ObjectKey,
    },
    /// The session has as many leases as it may.
    #[error(
        "lease {lease} is refused: this session has {max} leases, as many as it may; release some, or \
         raise `max_leases`"
    )]
    Full {
        /// Which.
        lease: ObjectKey,
        /// The bound.
        max: usize,
    },
    /// The session is not live: its deadline has passed, or it has not begun.
    #[error(
        "lease {lease} is not tried: the session is not live (it has not begun, or its deadline has \
         passed); wait for its next life, or use `acquire`, which waits"
    )]
    NotLive {
        /// Which.
        lease: ObjectKey,
    },
    /// The session was stopped, or its store refused conditional writes.
    #[error("lease {lease} is refused: the session has ended for good; start another")]
    Stopped {
        /// Which.
        lease: ObjectKey,
    },
}

/// A lease was to be released that this session does not hold. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("lease {lease} is not released: this session does not hold it (any more)")]
#[non_exhaustive]
pub struct NotHeld {
    /// Which.
    pub lease: ObjectKey,
}
