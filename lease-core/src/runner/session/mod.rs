//! The tokio side of a session: many named leases, one renewal.
//!
//! One [`SessionManager`] per process. It renews the process's session in the background, and
//! acquires and watches named leases when asked to; each is held by a [`NamedTenure`] with an epoch
//! and a fence of its own. What a process that holds a thousand leases pays per hour is what one lease
//! costs; see [`session`](crate::session) for the rest of the prices.
//!
//! # How it ends
//!
//! | what happens | the fence of the lease | the lease |
//! | --- | --- | --- |
//! | [`NamedTenure::release`], or the work of [`NamedTenure::run`] returns | shut first | released |
//! | the [`NamedTenure`] is dropped, its work panics or overruns its budget | shut at once | released T later, since something may still act; nothing else would ever free it while the session lives |
//! | the session expires, is lost or killed | all are shut at once | free for others once they have seen that |
//! | [`SessionManager::stop`] | open until the work has ended | released by the one write that ends the session |
//! | the [`SessionManager`] is dropped | all are shut at once | lapse with the session, T later |
//! | the future of `acquire` is dropped | never opened, or shut unseen | not wanted any more; given back if it came |
//!
//! A session that ended begins anew by itself: what was wanted then is wanted still, what was held has
//! to be acquired again.

mod builder;
mod driver;
mod error;
mod manager;
mod report;
mod run;
mod shards;
mod shared;
mod status;
mod tenure;

pub use builder::SessionBuilder;
pub use error::{NamedAcquireError, NamedRunError, NamedTenureEnded};
pub use manager::SessionManager;
pub use shards::{HeldShard, ShardSet, ShardStatus};
pub use status::{NameWatch, SessionStatus};
pub use tenure::NamedTenure;
