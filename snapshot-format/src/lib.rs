//! Snapshots that cannot lie.
//!
//! The active instance stores its database where a standby can find it. Three promises are made of
//! what a standby restores: it was written by a holder of the cluster's secret, it is what its name
//! says, and it is never older than what the cluster last had without an operator saying so.
//!
//! | you want to | look at |
//! | --- | --- |
//! | know where a snapshot is kept, and which one comes first | [`name`] |
//! | know what a snapshot says about itself | [`header`] |
//! | seal and open, or know what the seal is | [`cipher`]; [`stream`] for a whole snapshot |
//! | store a snapshot | [`writer`]: [`Writer`] |
//! | find the snapshots, know what each is worth, and read one | [`catalog`]: [`Catalog`] |
//! | know which snapshots may be deleted, and delete them | [`retention`] |
//! | know what a takeover restores, or why it refuses | [`rollback`] |
//! | put a restored database in the place of the old one | [`install`]: [`DatabaseFile`](install::DatabaseFile) |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `local` | no | [`local`]: snapshots in a plain directory, durable. It brings tokio |
//!
//! For S3 and its kin turn on the features of `object_store` itself (`aws`, `gcp`, `azure`) and hand
//! its client over. Nothing here needs a runtime of its own.
#![cfg_attr(not(feature = "local"), doc = "[`local`]: #features")]

pub mod catalog;
pub mod cipher;
pub mod header;
pub mod install;
#[cfg(feature = "local")]
pub mod local;
pub mod name;
mod pipe;
pub mod retention;
pub mod rollback;
pub mod stream;
mod thread;
pub mod writer;

pub use catalog::Catalog;
pub use fencing;
pub use lease_core;
pub use object_store;
pub use writer::Writer;
