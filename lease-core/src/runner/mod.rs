//! The tokio side: a manager that watches and renews in the background, and the guard of one tenure.
//!
//! # How a service uses it
//!
//! **One [`LeaseManager`] per lease and process**, started once. It is a standby that watches; it
//! acquires only when asked. Then one of three:
//!
//! - [`LeaseManager::acquire`], then [`Tenure::run`]: hold the lease for one piece of work.
//! - [`LeaseManager::run_while_active`]: hold it again and again, and run the work under each tenure.
//!   The usual form of a service; it can be spawned.
//! - [`LeaseManager::take_over`], then [`Tenure::confirm`] or [`Tenure::abandon`]: restore the state
//!   first, with the lease held and renewed but the fence shut.
//!
//! ```
//! use lease_core::runner::{LeaseManager, Tenure};
//! use std::sync::Arc;
//! # use lease_core::{Timing, machine::FirstStart, testing::MemoryStore};
//! # use std::time::Duration;
//!
//! async fn serve(tenure: Arc<Tenure>) {
//!     let (fence, lost) = (tenure.fence(), tenure.lost());
//!     while !lost.is_cancelled() {                        // or `select!` on `lost.cancelled()`
//!         if fence.check().is_err() {                     // before every side effect
//!             break;
//!         }
//!         // …one step of the work; every write carries `fence.epoch()`…
//!         # tokio::time::sleep(Duration::from_millis(1)).await;
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let lease = LeaseManager::builder(MemoryStore::new(), "orders")
//! #     .timing(Timing::short(Duration::from_millis(300), Duration::from_millis(100))?)
//! #     .instance_dir(scratch.path().join("instance")).first_start(FirstStart::Immediate).start().await?;
//! let lease = Arc::new(lease);
//! let watching = Arc::clone(&lease);
//! let service = tokio::spawn(async move { watching.run_while_active(serve).await });
//! # lease.status().wait_for(|status| status.role == lease_core::machine::Role::Active).await?;
//! // …until SIGTERM…
//! lease.stop().await;                                     // the work ends, then the lease is released
//! service.await??;
//! # Ok(()) }
//! ```
//!
//! A service that has state to restore:
//!
//! ```
//! use lease_core::runner::{AcquireError, LeaseManager, Tenure, TenureEnded};
//! # use lease_core::{Timing, machine::FirstStart, testing::MemoryStore};
//! # use std::time::Duration;
//! # async fn restore() -> Result<(), std::io::Error> { Ok(()) }
//!
//! async fn next(lease: &LeaseManager) -> Result<Tenure, AcquireError> {
//!     loop {
//!         let tenure = lease.take_over().await?;          // ours, renewed, its fence still shut
//!         if !tenure.predecessor().is_trusted() || restore().await.is_err() {
//!             tenure.abandon().await;                     // given back; not tried again before T
//!             continue;
//!         }
//!         match tenure.confirm().await {                  // waits out a hold-back, then opens the fence
//!             Ok(()) => return Ok(tenure),
//!             Err(TenureEnded { reason, .. }) => println!("lost while restoring: {reason}"),
//!         }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let lease = LeaseManager::builder(MemoryStore::new(), "orders")
//! #     .timing(Timing::short(Duration::from_millis(300), Duration::from_millis(100))?)
//! #     .instance_dir(scratch.path().join("instance")).first_start(FirstStart::Immediate).start().await?;
//! # next(&lease).await?.release().await;
//! # lease.stop().await;
//! # Ok(()) }
//! ```
//!
//! # How it ends
//!
//! | what happens | the fence | the work | the lease |
//! | --- | --- | --- | --- |
//! | the work returns | shut after it | | released |
//! | the tenure is lost or expires | shut at once | told by [`Tenure::lost`]; dropped after the [step-down budget](LeaseBuilder::step_down_budget) | somebody else's, or lapses |
//! | [`LeaseManager::stop`] | open until the work has ended | told, dropped after the budget | released; lapses if the work overran |
//! | the work panics | shut at once | | lapses |
//! | the [`Tenure`] is dropped | shut at once | told | lapses |
//! | the [`LeaseManager`] is dropped | shut at once | told | lapses; nothing renews any more |
//! | the future of `run` or `run_while_active` is dropped | shut at once | dropped where it stands | lapses |
//! | the future of `acquire` or `take_over` is dropped | never opened | | not wanted any more; given back if it came |
//! | the store hangs, fails or panics | shut at the deadline | told | lapses |
//! | the runtime is shut down | shut at once | | lapses |
//! | the runtime is blocked | shut at the deadline, by itself | told once the runtime goes on | lapses |
//!
//! "Lapses" means that nothing is written: others wait as they do after a crash, since something
//! may still act. Only work that is known to have ended is followed by a release.
//!
//! # A thread of its own
//!
//! The renewals run on the service's runtime. Work that blocks its threads for longer than T − M
//! starves them, and the tenure ends; that is safe, and a nuisance. Either keep blocking work off
//! the runtime (`spawn_blocking`), or choose [`LeaseBuilder::dedicated_thread`]: renewals, and
//! every request to the store, then run on a thread and a runtime of their own.
//!
//! # What it tells
//!
//! [`LeaseManager::status`] is a channel with the present: role, epoch, deadline, what is waited
//! for and until when, the last error. [`LeaseManager::events`] is what happened, each event once;
//! a slow reader is told how many it missed. Both say the same as the log, which goes through
//! `tracing`.

mod background;
mod builder;
mod driver;
mod error;
mod manager;
mod report;
mod requests;
mod run;
mod session;
mod shared;
mod status;
mod tenure;

pub use builder::{EpochFloor, LeaseBuilder, UntrustedPredecessor};
pub use error::{AcquireError, RunError, StartError, TenureEnded};
pub use manager::LeaseManager;
pub use session::{
    HeldShard, NameWatch, NamedAcquireError, NamedRunError, NamedTenure, NamedTenureEnded,
    SessionBuilder, SessionManager, SessionStatus, ShardSet, ShardStatus,
};
pub use status::{Delivery, EventStream, Status};
pub use tenure::Tenure;
