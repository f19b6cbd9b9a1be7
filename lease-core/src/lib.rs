//! A lease with epochs, on any store that has conditional writes.
//!
//! A service runs more than once, and at most one instance may act at any time. This crate decides
//! which: all instances watch one small object, the *lease*, in a directory or a bucket. One of
//! them holds it and renews it; when it stops, another takes over within a bounded time, under a
//! larger *epoch*. No instance reads another one's clock, and none talks to another.
//!
//! ```
//! use lease_core::{LeaseManager, Timing, fencing::FenceShut, machine::FirstStart};
//! use std::time::Duration;
//! # use lease_core::testing::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let instance_dir = scratch.path().join("instance");
//! let store = MemoryStore::new();     // of the feature `testing`; a service opens a `LocalStore`
//! let lease = LeaseManager::builder(store, "orders")
//!     .timing(Timing::new(Duration::from_secs(30), Duration::from_secs(10))?)
//!     .instance_dir(instance_dir)
//!     .first_start(FirstStart::Immediate)         // whoever runs this knows that the cluster is new
//!     .start()
//!     .await?;                                    // a standby from here on
//!
//! let tenure = lease.acquire().await?;            // waits until the lease is ours
//! let fence = tenure.fence();
//! tenure
//!     .run(async |lost| {                         // `lost` is cancelled when it is time to stop
//!         fence.check()?;                         // before every side effect
//!         println!("write it under epoch {}", fence.epoch());
//!         # drop(lost);
//!         Ok::<_, FenceShut>(())
//!     })
//!     .await?;                                    // released once the work has ended
//! lease.stop().await;
//! # Ok(()) }
//! ```
//!
//! A check before each side effect is half of the safety. A process can be paused between the check
//! and the write; so the write carries the epoch, and the resource refuses smaller ones with a
//! [`FencingGate`](fencing::FencingGate). The [protocol] says what is promised and what is not.
//!
//! # Where to look
//!
//! | you want to | look at |
//! | --- | --- |
//! | hold a lease in a service on tokio | [`runner`]: [`LeaseManager`], [`Tenure`] |
//! | spread shards over processes | [`runner`]: `ShardSet`; then [`session::shards`] |
//! | choose how fast a takeover is | [`timing`]: [`Timing`] |
//! | keep others from writing the lease | [`auth`]: [`ClusterSecret`](auth::ClusterSecret) |
//! | know why a tenure ended, or what is waited for | [`machine`]: [`EndReason`](machine::EndReason), [`WaitReason`](machine::WaitReason) |
//! | keep stale holders away from objects in the store | [`fenced`]: [`FencedObject`](fenced::FencedObject) |
//! | write a driver for another store | [`store`]: [`LeaseStore`]; then [`testing::conformance`] and [`probe`] |
//! | test your own failover | [`testing`]: stores that fail, clocks that a test moves |
//! | prove that no two instances acted at once | [`audit`]: [`Auditor`](audit::Auditor) |
//! | drive the lease without tokio, or check a model of it | [`machine`]: [`Machine`](machine::Machine); then [`wire`] |
//! | read what stands in the store | [`record`], [`session::record`], and [`history`] for the instance's own directory |
//! | know what a name may be | [`key`] |
//! | read another format as strictly as the record | [`json`] |
//! | know what many leases cost a month | [`cost`] |
//! | know why all of it is safe | [`protocol`] |
//!
//! The driver for a directory is the crate `lease-local`. The check at the resource is the crate
//! [`fencing`], which links neither tokio nor this crate.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `runner` | yes | [`runner`], and with it tokio. Without it: record, keys and the state machine alone |
//! | `testing` | no | [`testing`]. Put it into your `dev-dependencies` |
//!
#![cfg_attr(not(feature = "runner"), doc = "[`LeaseManager`]: #features")]
#![cfg_attr(not(feature = "runner"), doc = "[`Tenure`]: #features")]
#![cfg_attr(not(feature = "runner"), doc = "[`runner`]: #features")]
#![cfg_attr(not(feature = "testing"), doc = "[`testing`]: #features")]
#![cfg_attr(not(feature = "testing"), doc = "[`testing::conformance`]: #features")]

pub mod audit;
pub mod auth;
pub mod cost;
pub mod fenced;
mod hex;
pub mod history;
pub mod json;
pub mod key;
pub mod machine;
pub mod probe;
pub mod protocol {
    #![doc = include_str!("../../docs/protocol.md")]
}
mod race;
pub mod record;
#[cfg(feature = "runner")]
pub mod runner;
pub mod session;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timing;
pub mod wire;

pub use fencing;
pub use key::ObjectKey;
#[cfg(feature = "runner")]
pub use runner::{LeaseManager, Tenure};
pub use store::{LeaseStore, Read, StoreError, StoreErrorKind, Version};
pub use timing::{Timing, TimingError};
