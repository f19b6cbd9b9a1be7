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
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timing;

pub use fencing;
pub use key::ObjectKey;
pub use store::{LeaseStore, Read, StoreError, StoreErrorKind, Version};
pub use timing::Timing;
