//! What a takeover restores, or why it refuses.
//!
//! Whoever can write to the store can delete objects as well as copy them. With the newest snapshots
//! or the lease deleted, an older genuine snapshot would be the newest that is left, and restoring it
//! would roll the application back: revoked keys return, records written since are lost. So a
//! takeover compares what is left with what it knows, and refuses where something is missing.
//!
//! [`decide`] is a function over [`Facts`] that were collected before; it asks nobody and changes
//! nothing. The first rule that applies decides:
//!
//! | rule | applies | then |
//! | --- | --- | --- |
//! | [`Forced`](Rule::Forced) | an operator has decided | what the operator said, if it is there and genuine |
//! | [`LeaseUntrusted`](Rule::LeaseUntrusted) | the lease is unreadable or forged; or unsigned, although a snapshot shows a header or this instance has seen a signed one | refuse |
//! | [`LeaseMissing`](Rule::LeaseMissing) | no lease, although there are snapshots, or this instance knew the cluster | refuse |
//! | [`FirstActivation`](Rule::FirstActivation) | no lease, and nothing anywhere | keep the database, or start empty |
//! | [`LeaseReplayed`](Rule::LeaseReplayed) | a verified snapshot has a higher epoch than the lease | refuse |
//! | [`LeaseStale`](Rule::LeaseStale) | the lease names a snapshot that is older than the two newest verified ones | refuse |
//! | [`Unchecked`](Rule::Unchecked) | what sorts before the newest verified one cannot be checked | refuse, try again |
//! | [`LegacyAfterUpgrade`](Rule::LegacyAfterUpgrade) | none verified but legacy ones, although one with a header was named or is seen | refuse |
//! | [`BehindLease`](Rule::BehindLease) | the newest verified one is older than one that the lease, or one seen before, names | refuse |
//! | [`BehindLocal`](Rule::BehindLocal) | it is older than this instance wrote or restored | refuse |
//! | [`Legacy`](Rule::Legacy) | none verified but legacy ones | restore the first, with a warning |
//! | [`NoSnapshot`](Rule::NoSnapshot) | none to restore | refuse |
//! | [`OwnIsNewest`](Rule::OwnIsNewest) | this instance wrote the newest, under the epoch it last held | keep the database |
//! | [`Newest`](Rule::Newest) | otherwise | restore the newest verified one |
//!
//! An older snapshot never stands in for the newest: if the one that is decided on cannot be restored,
//! the takeover fails.
//!
//! # Refused, and then?
//!
//! The instance abandons the takeover and stays a standby; after T it tries again, so that what is
//! wrong keeps being told. [`Reason::may_pass`] tells a store that fails from what only a person can
//! settle: an operator looks at the store, at who can write to it and at the log, and then forces
//! *one* takeover of *one* instance with an [`Override`]. Whoever carries out the decision uses it up,
//! and calls `lease_core::history::InstanceDir::forced_takeover` with what was done.
//!
//! # Where the reference is of two minds
//!
//! An instance whose database is populated, in a cluster of which nothing is known anywhere, is either
//! the first of a new cluster or one whose cluster was deleted together with its history. By default
//! it keeps its database, as an instance must that is to become the first of a cluster; say
//! [`PopulatedFirst::Refuse`] to have an operator asked.

mod decide;
mod facts;
mod gather;
mod reason;

pub use decide::{Choice, Decision, Restore, decide};
pub use facts::{Facts, Lease, Override, OwnDatabase, PopulatedFirst, Snapshots, Standing};
pub use reason::{Reason, Rule};
