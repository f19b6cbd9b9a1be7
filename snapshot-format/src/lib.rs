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
//! | know what a listed object is worth | [`catalog`] |
//! | put a restored database in the place of the old one | [`install`] |

pub mod catalog;
pub mod header;
pub mod install;
pub mod name;

pub use fencing;
pub use lease_core;
pub use object_store;
