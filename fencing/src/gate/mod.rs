//! The resource's side: refuse every token below the highest seen.
//!
//! A fence tells a holder that its time is up; it cannot stop a write that is already on its way, or
//! a process that was paused between the check and the write. The resource can: it remembers the
//! highest token that it has seen and refuses what is smaller. One comparison, no clock.
//!
//! # One set of semantics
//!
//! | | |
//! | --- | --- |
//! | a token is admitted | iff it is at least the highest seen; nothing seen yet: any |
//! | a tie | is admitted: a holder writes many times under one token |
//! | a smaller one | is [`Stale`], and nothing changes |
//! | `raise` | is what admits, without a write: a new holder shuts the old one out before it writes anything |
//! | what raises the mark | is durable before the write is admitted, where the gate outlives its process |
//!
//! | the resource | its gate |
//! | --- | --- |
//! | memory of this process | [`FencingGate`] |
//! | files on this machine | [`FileGate`] (feature `fs`) |
//! | an object in a bucket or directory | `lease_core::fenced::FencedObject` |
//! | an HTTP endpoint | `fencing::http::FencingLayer` (feature `tower`) |
//! | a table | one SQL statement: `docs/fencing.md` |
//!
//! # Admitting and writing are one step
//!
//! A write that was admitted and then waits can land after a larger token came by. So admit *inside*
//! what guards the resource: under its lock, in its transaction, in the condition of its write. A
//! [`FileGate`] hands out its lock with the admission; a `FencedObject` puts the token into the
//! condition of the write itself.
//!
#![cfg_attr(not(feature = "fs"), doc = "[`FileGate`]: crate#features")]

#[cfg(feature = "fs")]
mod file;
mod memory;

#[cfg(feature = "fs")]
pub use file::{Admitted, FileGate, FileGateError, MarkFlaw};
pub use memory::FencingGate;

use crate::token::Epoch;

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

impl Stale {
    /// The rule that every gate keeps: `presented` passes iff it is at least the highest seen.
    ///
    /// For gates of one's own, over whatever remembers the mark.
    ///
    /// ```
    /// use fencing::{Epoch, Stale};
    ///
    /// let (nine, ten) = (Epoch::new(9).unwrap(), Epoch::new(10).unwrap());
    /// assert!(Stale::check(ten, Some(nine)).is_ok() && Stale::check(nine, None).is_ok());
    /// assert!(Stale::check(nine, Some(nine)).is_ok());
    /// assert_eq!(Stale::check(nine, Some(ten)).unwrap_err().highest, ten);
    /// ```
    ///
    /// # Errors
    ///
    /// `Stale` if it is smaller.
    pub fn check(presented: Epoch, highest: Option<Epoch>) -> Result<(), Self> {
        match highest {
            Some(highest) if highest > presented => Err(Self { presented, highest }),
            _ => Ok(()),
        }
    }
}
