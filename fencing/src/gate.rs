//! The resource's side: refuse every token below the highest seen.
//!
//! A fence tells a holder that its time is up; it cannot stop a write that is already on its way, or
//! a process that was paused between the check and the write. The resource can: it remembers the
//! highest epoch that it has seen and refuses what is smaller. One comparison, no clock.

use crate::token::Epoch;
use std::sync::atomic::{AtomicU64, Ordering};

/// A gate in memory: admits a token iff it is at least the highest one seen.
///
/// A tie is admitted: a holder writes many times under one epoch. What the gate remembers ends with
/// the process, so it protects resources that live no longer than the process does.
///
/// ```
/// use fencing::{Epoch, FencingGate};
///
/// let gate = FencingGate::new();
/// let (nine, ten) = (Epoch::new(9).unwrap(), Epoch::new(10).unwrap());
/// gate.admit(nine)?;
/// gate.raise(ten);                                 // a new holder shuts the old one out
/// let stale = gate.admit(nine).unwrap_err();
/// assert_eq!((stale.presented, stale.highest), (nine, ten));
/// # Ok::<(), fencing::Stale>(())
/// ```
#[derive(Debug, Default)]
pub struct FencingGate {
    /// The highest epoch seen; 0 while none was.
    highest: AtomicU64,
}

impl FencingGate {
    /// A gate that has seen nothing and admits any epoch.
    #[must_use]
    pub const fn new() -> Self {
        Self { highest: AtomicU64::new(0) }
    }

    /// A gate that remembers `highest` from an earlier life.
    #[must_use]
    pub const fn with_highest(highest: Epoch) -> Self {
        Self { highest: AtomicU64::new(highest.as_u64()) }
    }

    /// Asks whether a write that carries `token` may pass, and remembers the token if so.
    ///
    /// # Errors
    ///
    /// [`Stale`] if a larger token was seen. The write must not be made; nothing has changed.
    pub fn admit(&self, token: Epoch) -> Result<(), Stale> {
        let before = self.highest.fetch_max(token.as_u64(), Ordering::AcqRel);
        match Epoch::new(before) {
            Some(highest) if highest > token => Err(Stale { presented: token, highest }),
            _ => Ok(()),
        }
    }

    /// Remembers `token` without a write, so that smaller ones are refused from now on.
    ///
    /// A new holder calls this before its first write. A smaller token changes nothing.
    pub fn raise(&self, token: Epoch) {
        self.highest.fetch_max(token.as_u64(), Ordering::AcqRel);
    }

    /// The highest token seen so far.
    #[must_use]
    pub fn highest(&self) -> Option<Epoch> {
        Epoch::new(self.highest.load(Ordering::Acquire))
    }
}

/// The token is smaller than one that the resource has seen: its tenure is over.
///
/// The caller must stop. Retrying with the same token can never succeed.
///
/// A service that gets it answers its caller as for a lost lease, and lets the work under that
/// epoch end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "stale token: epoch {presented} was presented, but epoch {highest} has been here; this tenure \
     is over, stop its work"
)]
#[non_exhaustive]
pub struct Stale {
    /// What the refused writer carried.
    pub presented: Epoch,
    /// What the resource has seen.
    pub highest: Epoch,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    #[test]
    fn case_46_tokens_compare_as_numbers_and_ties_pass() {
        let gate = FencingGate::new();
        gate.admit(epoch(9)).unwrap();
        gate.admit(epoch(10)).unwrap();
        gate.admit(epoch(10)).unwrap();
        assert_eq!(gate.admit(epoch(9)), Err(Stale { presented: epoch(9), highest: epoch(10) }));

        let (even, odd) = (epoch(1 << 53), epoch((1 << 53) + 1));
        gate.admit(odd).unwrap();
        assert!(gate.admit(even).is_err());
    }

    #[test]
    fn raising_shuts_out_without_a_write_and_never_lowers() {
        let gate = FencingGate::with_highest(epoch(5));
        gate.raise(epoch(7));
        gate.raise(epoch(6));
        assert_eq!(gate.highest(), Some(epoch(7)));
        assert!(gate.admit(epoch(6)).is_err());
    }
}
