//! The client's side of a lock on some other server.
//!
//! A lock server grants a lock for a *lease*, with a token, and the client confirms that it still
//! holds it. The server lets the lock go one lease after the last confirmation that it received; the
//! client cannot know when that was, only when it sent one. So a client stops by itself after a part
//! of the lease without a confirmation, counted from when the last confirmed request was sent:
//!
//! ```text
//!  sent                      0.8 × lease          lease
//!  │───── the fence is open ──────│──── margin ────│ the server may grant it to the next
//! ```
//!
//! The margin is for clocks that run at different rates and for work that has to stop; it is never
//! below a fifth (protocol, section 2). What is paused longer than that is refused at the resource, by
//! the token.

use crate::{
    clock::{Clock, Reading},
    fence::{Fence, FenceControl, FenceShut},
    token::Epoch,
};
use std::{sync::Arc, time::Duration};

/// How long a lock is granted for, and for how much of that its client believes it.
///
/// ```
/// use fencing::claim::Terms;
/// use std::time::Duration;
///
/// let terms = Terms::new(Duration::from_secs(10))?;
/// assert_eq!(terms.window(), Duration::from_secs(8));
/// assert_eq!(terms.with_fraction(600)?.window(), Duration::from_secs(6));
/// assert!(terms.with_fraction(801).is_err());          // no margin left
/// # Ok::<(), fencing::claim::TermsError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    lease: Duration,
    per_mille: u16,
}

impl Terms {
    /// The largest part of a lease that a client may believe in silence: 0.8, in thousandths.
    pub const MAX_PER_MILLE: u16 = 800;

    /// Abandons after 0.8 × `lease` of silence. A lease is from 1 ms to a year.
    ///
    /// # Errors
    ///
    /// [`TermsError`] if the lease is out of range.
    pub fn new(lease: Duration) -> Result<Self, TermsError> {
        Self { lease, per_mille: Self::MAX_PER_MILLE }.checked()
    }

    /// The same, abandoning after `per_mille` thousandths of the lease: 1 to 800.
    ///
    /// # Errors
    ///
    /// [`TermsError`] if it is out of range. Above 800 the margin is below a fifth of the lease, which
    /// clocks that run at different rates can use up.
    pub fn with_fraction(self, per_mille: u16) -> Result<Self, TermsError> {
        Self { per_mille, ..self }.checked()
    }

    fn checked(self) -> Result<Self, TermsError> {
        let Self { lease, per_mille } = self;
        let longest = Duration::from_secs(365 * 24 * 3600);
        let is_good = (1..=Self::MAX_PER_MILLE).contains(&per_mille)
            && (Duration::from_millis(1)..=longest).contains(&lease);
        if is_good { Ok(self) } else { Err(TermsError { lease, per_mille }) }
    }

    /// The lease that the server grants.
    #[must_use]
    pub const fn lease(self) -> Duration {
        self.lease
    }

    /// How long after the sending of a confirmed request the fence is open.
    #[must_use]
    pub fn window(self) -> Duration {
        // A year in nanoseconds times 800 is below 2^64, and so is what is left after the division.
        let nanos = self.lease.as_nanos() * u128::from(self.per_mille) / 1000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A lease, or the part of it that is to be believed, is out of range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a lock of {lease:?} believed for {per_mille} thousandths of that in silence is refused: a lease \
     is from 1 ms to a year, and the part from 1 to 800, so that a fifth is left for clocks that run \
     at different rates"
)]
pub struct TermsError {
    lease: Duration,
    per_mille: u16,
}

/// A lock that was granted by some server, as its client believes in it.
///
/// Dropping it shuts its fence; telling the server is the client's.
///
/// ```
/// use fencing::{Claim, Clock as _, Epoch, claim::Terms, testing::ManualClock};
/// use std::{sync::Arc, time::Duration};
///
/// let clock = ManualClock::new();
/// let terms = Terms::new(Duration::from_secs(10))?;
///
/// let sent = clock.reading();                         // before the request for the lock is sent;
/// let token = Epoch::new(41).unwrap();                // it was granted, with a token
/// let mut claim = Claim::granted(terms, token, sent, Arc::new(clock.clone()))?;
/// let fence = claim.fence();
///
/// clock.advance(Duration::from_secs(5));
/// let sent = clock.reading();                         // a heartbeat is sent,
/// claim.confirmed(sent)?;                             // and answered "still yours"
/// assert_eq!(fence.remaining(), Duration::from_secs(8));
///
/// clock.advance(Duration::from_secs(8));              // silence
/// assert!(fence.check().is_err());
/// assert!(claim.confirmed(clock.reading()).is_err()); // abandoned for good: ask for the lock again
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Claim {
    control: FenceControl,
    window: Duration,
}

impl Claim {
    /// A lock that was granted under `token`, in answer to a request that was sent at `sent_at`.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if the answer took so long that nothing of the window is left. The server
    /// believes that it granted the lock; release it there, or let it lapse.
    pub fn granted(
        terms: Terms,
        token: Epoch,
        sent_at: Reading,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FenceShut> {
        let window = terms.window();
        let mut control = FenceControl::new(token, clock);
        control.open(sent_at, window)?;
        Ok(Self { control, window })
    }

    /// The check, to be cloned into every worker. Its epoch is the token.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.control.fence()
    }

    /// The server confirmed a request that was sent at `sent_at`. An older one than was confirmed
    /// before changes nothing.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if the claim was abandoned before, or its time was up at this very moment: an
    /// answer that comes too late revives nothing.
    pub fn confirmed(&mut self, sent_at: Reading) -> Result<(), FenceShut> {
        self.control.extend(sent_at, self.window)
    }

    /// Gives the claim up: the server said that it is lost, or the client is about to release it.
    ///
    /// Before the release is sent: from then on the server may grant the lock to another.
    pub fn abandon(&mut self) {
        self.control.shut();
    }
}
