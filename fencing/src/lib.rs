//! Epochs as fencing tokens, the local fence, and the gates at the resources they protect.
//!
//! A lease tells one process at a time "you may act". Two things can still go wrong, and this crate
//! holds the answer to each:
//!
//! - *The holder does not notice that its time is up.* It asks its [`fence::Fence`] before every
//!   side effect: a few dozen nanoseconds, no lock, no allocation, shut unless proved open.
//! - *The holder is paused between that check and the write.* The write carries the [`token::Epoch`]
//!   of the tenure, and the resource's [gate] refuses every epoch below the highest it has seen.
//!
//! Whoever grants locks of their own makes tokens with a [`source::TokenSource`]; whoever holds a lock
//! on some other server has a [`claim::Claim`], and through it the same fence.
//!
//! The crate is the leaf of the workspace: no async, and no I/O without the feature `fs`. A
//! protected resource can link it without linking leases or an async runtime.
//!
//! ```
//! use fencing::{gate::FencingGate, token::Epoch};
//!
//! let gate = FencingGate::new();
//! let (old, new) = (Epoch::new(7).unwrap(), Epoch::new(8).unwrap());
//! gate.admit(old)?;                          // the holder of epoch 7 writes
//! gate.admit(new)?;                          // it was taken over: epoch 8 writes
//! assert!(gate.admit(old).is_err());         // 7 wakes up and is refused
//! # Ok::<(), fencing::gate::Stale>(())
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `fs` | crash-safe files (`durable`), and the gate in a file (`gate::FileGate`); Unix |
//! | `serde` | `Epoch` as an exact JSON integer |
//! | `testing` | a clock that a test drives, and what any gate is held against |
//! | `tower` | a layer that is the gate of an HTTP endpoint (`http`); no runtime |

pub mod claim;
pub mod clock;
#[cfg(feature = "fs")]
pub mod durable;
pub mod fence;
pub mod gate;
#[cfg(feature = "tower")]
pub mod http;
pub mod source;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
pub mod token;

pub use claim::Claim;
pub use clock::{Clock, MonotonicTime, Reading, SystemClock, WallTime};
pub use fence::{Fence, FenceControl, FenceShut, ShutReason};
#[cfg(feature = "fs")]
pub use gate::FileGate;
pub use gate::{FencingGate, Stale};
pub use source::TokenSource;
pub use token::Epoch;
