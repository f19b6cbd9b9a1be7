//! A lease with epochs on any store that has conditional writes.

pub mod key;
pub mod probe;
mod race;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use fencing;
pub use key::ObjectKey;
pub use store::{LeaseStore, Read, StoreError, StoreErrorKind, Version};
