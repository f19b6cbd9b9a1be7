use super::Stale;
use crate::token::Epoch;
use std::sync::atomic::{AtomicU64, Ordering};

/// A gate in memory: admits a token iff it is at least the highest one seen.
///
/// A tie is admitted: a holder writes many times under one epoch. What the gate remembers ends with
/// the process, so it protects resources that live no longer than the process does. For others start
/// it [with](Self::with_highest) what the resource itself remembers.
///
/// Lock-free: one `fetch_max`. Admit under the lock that guards the resource; an admission that is
/// not the same step as its write can be overtaken.
///
/// ```
/// use fencing::{Epoch, FencingGate};
///
/// let gate = FencingGate::new();
/// let (nine, ten) = (Epoch::new(9).unwrap(), Epoch::new(10).unwrap());
/// gate.admit(nine)?;
/// gate.raise(ten)?;                                // a new holder shuts the old one out
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
        Stale::check(token, Epoch::new(before))
    }

    /// Remembers `token` without a write, so that smaller ones are refused from now on.
    ///
    /// A new holder calls this before its first write.
    ///
    /// # Errors
    ///
    /// [`Stale`] if a larger token was seen: this holder is not the newest. Nothing has changed.
    pub fn raise(&self, token: Epoch) -> Result<(), Stale> {
        self.admit(token)
    }

    /// The highest token seen so far.
    #[must_use]
    pub fn highest(&self) -> Option<Epoch> {
        Epoch::new(self.highest.load(Ordering::Acquire))
    }
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
        gate.raise(epoch(7)).unwrap();
        gate.raise(epoch(6)).unwrap_err();
        assert_eq!(gate.highest(), Some(epoch(7)));
        assert!(gate.admit(epoch(6)).is_err());
    }
}
