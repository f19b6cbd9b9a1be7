//! What a test of a lease, of a driver, or of a whole failover needs (feature `testing`).
//!
//! - [`MemoryStore`]: an atomic store in memory, whose objects a test also changes by hand.
//! - [`FaultStore`]: any store, with faults before *or after* a write is applied, writes that land
//!   late, replies that never come, and a log of what was asked.
//! - [`ManualClock`]: time that moves only when it is told to.
//!
//! - `TokioClock` (with the feature `runner`): time that follows tokio's, which a test can pause.
//!
//! Nothing else here knows an async runtime, and nothing here sleeps: a test is told what it waits for.

pub mod conformance;
pub mod fault;
pub mod memory;
#[cfg(feature = "runner")]
mod tokio_clock;
mod watched;

pub use fault::{Call, Effect, Fault, FaultStore, Faults, Hold, Late, Op, Outcome};
pub use fencing::testing::ManualClock;
pub use memory::{AgePrecision, MemoryStore, Requests};
#[cfg(feature = "runner")]
pub use tokio_clock::TokioClock;
