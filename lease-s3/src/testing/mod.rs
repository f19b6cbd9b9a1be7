//! An S3 server in the process, with faults on request (feature `testing`).
//!
//! It speaks S3 over a socket of the loopback interface, checks signatures, honours conditions
//! atomically, and keeps its objects in memory. What is wrong with a whole server is a [`Quirk`];
//! what happens to one request is a [`Fault`].
//!
//! ```
//! use lease_s3::testing::{Fault, Method, TestServer};
//! use lease_core::{LeaseStore as _, ObjectKey, StoreErrorKind};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await?;
//! let store = server.options("orders").connect().await?;
//! let key = ObjectKey::new("lease.json")?;
//!
//! // The write lands, and its reply is lost.
//! server.next(Method::PUT, Fault::ApplyThenDrop);
//! let lost = store.create_if_absent(&key, "one".into()).await.unwrap_err();
//! assert_eq!(lost.kind(), StoreErrorKind::InDoubt);
//! assert_eq!(server.content("orders/lease.json").unwrap(), "one");
//! # Ok(()) }
//! ```

mod backend;
mod faults;
mod quirks;
mod server;

pub use faults::{Fault, Held, Late, Seen};
pub use http::Method;
pub use quirks::Quirk;
pub use server::{Requests, TestServer};
