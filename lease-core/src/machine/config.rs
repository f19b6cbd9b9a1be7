//! What a machine is told when it is made.

use crate::{
    key::InstanceId,
    record::{Nonce, SnapshotMark, TenureMark},
    timing::Timing,
};
use fencing::Epoch;
use std::time::Duration;

/// The choices of one instance. Everything in it can be compared and hashed; no key is inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who this instance is.
    pub instance: InstanceId,
    /// T, R, the validity rule, the largest ttl of the cluster.
    pub timing: Timing,
    /// Where the numbers of epochs come from.
    pub epochs: EpochOrigin,
    /// What to do on a missing lease while this instance has no history.
    pub first_start: FirstStart,
    /// Whether a released lease needs evidence that the release is the latest word.
    pub trust_release: TrustRelease,
    /// How long a takeover may stay unconfirmed before it is abandoned. Default 10 min.
    pub takeover_budget: Duration,
    /// Read right behind the holder's renewals instead of at any moment. Default yes.
    pub phase_lock: bool,
    /// Keep out of the lease for 2R after releasing it, so that a release hands over. Default yes.
    pub keep_out_after_release: bool,
    /// A cluster secret is configured: unsigned records are accepted on first use only.
    pub has_secret: bool,
    /// An epoch floor has to be told before an acquisition (`Action::FetchFloor`).
    pub has_floor: bool,
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
            first_start: FirstStart::default(),
            trust_release: TrustRelease::default(),
            takeover_budget: Duration::from_secs(600),
            phase_lock: true,
            keep_out_after_release: true,
            has_secret: false,
            has_floor: false,
            has_history: false,
            jitter_seed: None,
        }
    }
}

/// What this instance's history knows when the machine is made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Past {
    /// The last epoch that it held.
    pub last_epoch: Option<Epoch>,
    /// A tenure that may be reclaimed: its fence was opened, under this very lock file and boot.
    pub reclaimable: Option<TenureMark>,
    /// The nonce of the last release that it wrote.
    pub last_release: Option<Nonce>,
    /// It has seen an authenticated lease of the cluster.
    pub seen_authenticated: bool,
    /// The largest ttl that it remembers of the cluster.
    pub largest_ttl: Option<Duration>,
    /// The newest snapshot that it knows an authentic lease to have named.
    pub newest_named_snapshot: Option<SnapshotMark>,
}

impl Past {
    /// Whether nothing is known at all, as on a first start.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where the numbers of epochs come from (protocol, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EpochOrigin {
    /// Every new epoch is also at least `unix second × 2^21`: a lease that was deleted by hand, or
    /// an older one put back, still leads to a larger epoch, as long as no clock is far off.
    #[default]
    Clock,
    /// 1, 2, 3, …; after a deletion the history and the epoch floor alone keep epochs growing.
    Counter,
}

/// What to do on a missing lease while this instance has no history of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum FirstStart {
    /// Create it and hold back for W, since it may have been deleted from under a holder.
    #[default]
    HeldBack,
    /// Create it and open at once: *the operator says that the cluster is new*.
    ///
    /// Hazard: if it is not new and the lease was deleted by hand, its holder may still act for up
    /// to T − M, beside this instance. It counts only while the instance's history is empty.
    Immediate,
}

/// Whether a released lease needs evidence that the release is the latest word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum TrustRelease {
    /// Take it at once whatever is known.
    ///
    /// Hazard: an old released record that somebody puts back while another instance holds the
    /// lease hands it out a second time; only the token at the resource protects then.
    Always,
    /// Take it at once if it was just seen held, is one's own release, or is old by the store's own
    /// clock; otherwise take it held back, like a creation.
    #[default]
    Shown,
}
