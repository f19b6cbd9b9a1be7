//! What a test of a lease, of a driver, or of a whole failover needs (feature `testing`).
//!
//! | you want | take |
//! | --- | --- |
//! | a store without a directory or a server | [`MemoryStore`]; a test also changes its objects by hand |
//! | a store that fails, *before or after* it wrote; writes that land late; replies that never come | [`FaultStore`], around any store; it logs what it was asked |
//! | time that moves only when it is told to | [`ManualClock`], for a fence or a machine |
//! | a manager whose minutes pass at once | `TokioClock` (with the feature `runner`), in a test with paused time |
//! | whole failovers under every fault at once, from one seed | [`sim`] |
//! | to know whether your driver is one | [`conformance`] |
//!
//! Nothing but `TokioClock` knows an async runtime, and nothing here sleeps: a test is told what it
//! waits for.
//!
//! A failover in paused time, in a fraction of a second. The holder's store loses every answer; the
//! other instance takes over, and never are two fences open:
//!
//! ```
//! # #[cfg(feature = "runner")] mod example {
//! use lease_core::{
//!     LeaseManager, StoreErrorKind, Timing,
//!     testing::{Fault, FaultStore, MemoryStore, TokioClock},
//! };
//! use std::{sync::Arc, time::Duration};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (memory, clock) = (MemoryStore::new(), TokioClock::new());
//! let timing = Timing::new(Duration::from_secs(30), Duration::from_secs(10))?;
//! let store = FaultStore::new(memory.clone());
//! let faults = store.faults();
//! let first = LeaseManager::builder(store, "orders")
//!     .timing(timing).ephemeral_instance().clock(Arc::new(clock.clone())).start().await?;
//! let second = LeaseManager::builder(memory, "orders")
//!     .timing(timing).ephemeral_instance().clock(Arc::new(clock.clone())).start().await?;
//!
//! let before = first.acquire().await?;
//! faults.always_any(&Fault::ApplyThenFail(StoreErrorKind::InDoubt));
//! let after = second.acquire().await?;
//! assert!(!before.fence().is_open() && after.fence().is_open());
//! assert!(after.epoch() > before.epoch());
//! # Ok(()) }
//! # }
//! # #[cfg(feature = "runner")] fn main() { example::main().unwrap() }
//! # #[cfg(not(feature = "runner"))] fn main() {}
//! ```

pub mod conformance;
pub mod fault;
pub mod memory;
pub mod sim;
#[cfg(feature = "runner")]
mod tokio_clock;
mod watched;

pub use fault::{Call, Effect, Fault, FaultStore, Faults, Hold, Late, Op, Outcome};
pub use fencing::testing::ManualClock;
pub use memory::{AgePrecision, MemoryStore, Requests};
#[cfg(feature = "runner")]
pub use tokio_clock::TokioClock;
