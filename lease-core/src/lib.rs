//! A lease with epochs on any store that has conditional writes.

pub mod auth;
mod hex;
pub mod history;
mod json;
pub mod key;
pub mod machine;
pub mod probe;
mod race;
pub mod record;
#[cfg(feature = "runner")]
pub mod runner;
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
pub use timing::Timing;
