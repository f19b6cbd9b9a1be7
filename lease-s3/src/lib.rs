//! A lease in a bucket: the driver for Amazon S3, MinIO and their kin, Google Cloud Storage and Azure
//! Blob Storage.
//!
//! ```no_run
//! use lease_core::LeaseManager;
//! use lease_s3::S3Store;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = S3Store::from_url("s3://ha/orders?endpoint=http://127.0.0.1:9000")?.connect().await?;
//! let lease = LeaseManager::builder(store, "orders")
//!     .instance_dir("/var/lib/orders/instance")
//!     .start()
//!     .await?;
//! let tenure = lease.acquire().await?;
//! # drop(tenure); Ok(()) }
//! ```
//!
//! # How it works
//!
//! An object is `<prefix>/<key>` in the bucket; its version is its ETag (on Google Cloud Storage its
//! generation). Creating is a `PUT` with `If-None-Match: *`, replacing one with `If-Match`, a poll a
//! `GET` with `If-None-Match`. One renewal is one `PUT`, one poll is one `GET`, which is answered
//! with 304 and no body while nothing has changed. Nothing is ever retried: the state machine decides.
//!
//! The outcome of a request is told by what the wire showed, not by what a client made of it. A
//! reply is read up to 64 KiB. Whatever leaves a write's fate open is
//! [`InDoubt`](lease_core::StoreError::InDoubt): no reply, a time-out, a reset, a connection closed
//! without a reply, 408, 429, any 5xx but 501, anything unknown.
//!
//! # Which stores it takes
//!
//! Those whose conditional writes hold, and that is tried out when a store is
//! [connected](S3Options::connect): one after the other, and 16 at once. Many servers that speak S3
//! ignore the conditions or check them in two steps; they are refused, by the name of what failed.
//! Two peculiarities are found and handled: a store that wants its ETags back without quotes (Ceph
//! RGW 16), and one that tells no ETag in the reply to a `PUT` (each write is then read back once).
//! Weak ETags, and those that a compressing proxy has rewritten, are refused.
//!
//! Buckets with S3 Object Lock are refused unless told otherwise; see [`ObjectLock`].
//!
//! # What it relies on
//!
//! - **The store's conditional writes are atomic**, also for writers on other machines. The probe
//!   can refute that, not prove it.
//! - **Nothing in between changes requests or answers from memory.** The probe sees most that does.
//! - **Ages are told by one clock**, that of the store. A proxy whose `Date` is its own is found out
//!   if its clock is ahead by more than about a second when the store is connected.
//!
//! # Certificates
//!
//! Those that the system trusts are. A private CA is named by the option `ca` of the URL, or by
//! [`S3Options::root_certificates`]; a server whose certificate is not accepted is
//! [`OpenError::Certificate`], which says why and what to do.
//!
//! # Credentials
//!
//! From the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`), a web
//! identity token file, the container's credential endpoint (ECS, EKS) or the instance's metadata
//! (IMDSv2), in this order. They are fetched again before they expire, and when the store calls them
//! expired; every request is signed anew; a source that is silent for 10 s is given up for that
//! request. **Profile files (`~/.aws`) and SSO are not read.** The credentials need to read, write
//! and (for the probe's objects) delete objects under the prefix, and to list the bucket: without
//! that, S3 answers "forbidden" where an object is missing.
//!
//! # Runtimes
//!
//! A connection is driven by the runtime that opened it. Connecting uses connections of its own, so
//! that with `LeaseBuilder::dedicated_thread` every connection of the lease is opened on, and driven
//! by, that thread. Do not use such a store for anything else.

mod age;
mod classify;
mod client;
mod connect;
mod error;
mod object_lock;
mod options;
mod place;
mod provider;
mod store;
mod tag;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod url;
mod wire;
mod xml;

pub use error::{OpenError, UrlError};
pub use object_store::aws::AmazonS3Builder;
#[cfg(feature = "azure")]
pub use object_store::azure::MicrosoftAzureBuilder;
#[cfg(feature = "gcp")]
pub use object_store::gcp::GoogleCloudStorageBuilder;
pub use options::{ObjectLock, S3Options};
pub use provider::{LimitExceeded, Provider};
pub use store::S3Store;
pub use tag::Dialect;
