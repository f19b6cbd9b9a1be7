//! What all kinds of records have in common.

use super::{LeaseRecord, Unreadable};
use crate::key::ObjectKey;
use bytes::Bytes;

/// A kind of record that has a MAC: a [`LeaseRecord`], or one of [`session::record`].
///
/// Each kind has a label of its own under the MAC, so that none passes for another. No other crate
/// can add a kind.
///
/// [`session::record`]: crate::session::record
#[expect(private_bounds, reason = "sealed: what a MAC covers is decided in this crate alone")]
pub trait Record: Sealed + Sized {
    /// Reads a record of this kind.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the content is not exactly one record of the documented form. It can be
    /// anything at all: nothing here panics, and memory and stack are bounded.
    fn decode(content: &[u8]) -> Result<Self, Unreadable>;

    /// The record as it is written: one line of JSON, below 4 KiB.
    fn encode(&self) -> Bytes;
}

/// A kind of record of which a cluster has many, so that each says, under the MAC, where it is kept.
pub trait KeyedRecord: Record {
    /// Where it is kept. Read anywhere else it was copied, and is not to be believed.
    fn object_key(&self) -> &ObjectKey;
}

pub(crate) trait Sealed {
    /// The fields that every kind has.
    fn lease(&self) -> &LeaseRecord;

    /// The same, to be changed.
    fn lease_mut(&mut self) -> &mut LeaseRecord;

    /// What the MAC covers.
    fn canonical(&self) -> Vec<u8>;
}
