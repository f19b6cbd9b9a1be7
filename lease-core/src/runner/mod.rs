//! The tokio side: a manager that watches and renews in the background, and the guard of one tenure.

mod builder;
mod driver;
mod error;
mod manager;
mod report;
mod run;
mod shared;
mod status;
mod tenure;
mod thread;

pub use builder::{EpochFloor, LeaseBuilder, UntrustedPredecessor};
pub use error::{AcquireError, RunError, StartError, TenureEnded};
pub use manager::LeaseManager;
pub use status::{Delivery, EventStream, Status};
pub use tenure::Tenure;
