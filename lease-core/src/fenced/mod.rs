//! Objects that refuse stale writers: the gate at a bucket or a directory.
//!
//! A bucket compares no tokens. But it writes conditionally, and so a token in the object is enough:
//! whoever writes reads first, refuses if the object shows a larger token than its own, and replaces
//! exactly the version that it read. One comparison and one condition; no clock.
//!
//! ```text
//!  old holder, epoch 7               the object                 new holder, epoch 8
//!                                    epoch 7, version v1
//!  reads v1, sends If-Match: v1 ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┐           seal(8) reads v1,
//!  (paused, or on its way)           epoch 8, v2  ◄─ ┼ ─ ─ ─ ─ ─ ─ writes the same content
//!                                    412, unchanged ◄┘           under its own epoch
//!  reads v2: Stale { 7, 8 }          epoch 8, v3  ◄──────────────put
//! ```
//!
//! # The seal
//!
//! A write of the old holder can be *in flight* at the takeover: it was sent on a version that is
//! still the newest. So the new holder [seals](FencedObject::seal) each object before it goes on from
//! what it reads there: the same content, in a new version, under its own epoch. Whatever was sent on
//! an older version then finds its condition broken. What the seal returns is the last word of the old
//! holder: a write that landed between the seal's read and its write makes the seal start over, and is
//! in what it returns.
//!
//! A seal that is in doubt is none. It is repeated until it is certain: an answer, or a read that
//! shows the epoch. [`seal`](FencedObject::seal) tries a few times and then says so;
//! `seal_until_certain` (feature `runner`) goes on for as long as it is awaited.
//!
//! # What is stored
//!
//! One line of JSON, a line feed, and the content as it is:
//!
//! ```text
//! {"fenced":1,"epoch":8,"counter":3,"nonce":"9f…","state":"content","sha256":"2c…"}
//! ```
//!
//! The token is *inside* the bytes, because a version is often no more than a digest of them: without
//! it a seal would write the same bytes, of the same version, and shut nobody out. `counter` grows by
//! one with each write, so no version ever comes back; `nonce` is random, so that a writer knows
//! its own write again. A deleted object stays as a tombstone (`"state":"absent"`), which remembers
//! the epoch. The digest tells a content that was cut short or changed by hand.
//!
//! # What cannot be protected
//!
//! - **A key that the new holder does not know of.** An object that does not exist remembers no token.
//!   Sealing a *known* missing key leaves a tombstone there, so that a create in flight is refused; but
//!   an old holder that wakes up can create a key that nobody thought of. Let new objects be created
//!   under the epoch's own prefix ([`epoch_key`]), and let readers find them by names that stand in
//!   a fenced object: a manifest. What a stale holder creates then lies under its own old prefix,
//!   where nobody looks, and it cannot change the manifest.
//! - **Whoever does not use this.** A write without a condition, a deletion by hand or by a lifecycle
//!   rule: the object forgets, or becomes unreadable here. Give the service's credentials the prefix
//!   alone, and no lifecycle rules to it.
//! - **Two objects at once.** Each object is sealed and written by itself. Put what must change
//!   together into one, or commit through a manifest.
//! - **A forged token.** Nothing here is authenticated: who can write objects can write a token of
//!   2^64 − 1, as well as delete everything.
//!
//! A seal must be certain for *every* object that the old holder could write before the new one acts
//! on any of them.

mod doubt;
mod envelope;
mod error;
mod object;
mod seal;

pub use doubt::{Doubt, Resolution};
pub use envelope::OVERHEAD_BYTES_MAX;
pub use error::{EnvelopeFlaw, FencedError};
pub use object::FencedObject;

use crate::key::{NameError, ObjectKey};
use bytes::Bytes;
use fencing::Epoch;

/// An object as it stands in the store.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Current {
    /// What was put there; `None` if it was deleted, or sealed before anything was put there.
    pub content: Option<Bytes>,
    /// Which write it is.
    pub stamp: Stamp,
}

/// Which of an object's writes it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Stamp {
    /// The highest token that the object has seen.
    pub epoch: Epoch,
    /// How many writes the object has seen, seals included.
    pub counter: u64,
}

/// What [`FencedObject::update`] makes of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Delete it.
    Delete,
    /// Leave it as it is; nothing is written.
    Keep,
    /// Put this there.
    Put(Bytes),
}

/// A key under the epoch's own prefix: `<prefix>/e<epoch>/<name>`, the epoch in 20 digits, so that
/// names sort as epochs do.
///
/// New objects are created there: what a stale holder creates is under its own old epoch, and is
/// found by nobody whose manifest it cannot change.
///
/// ```
/// use lease_core::{ObjectKey, fencing::Epoch, fenced::epoch_key};
///
/// let key = epoch_key(&ObjectKey::new("orders")?, Epoch::new(8).unwrap(), "segment-1")?;
/// assert_eq!(key.as_str(), "orders/e00000000000000000008/segment-1");
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
///
/// # Errors
///
/// [`NameError`] if the name is none, or the key too long.
pub fn epoch_key(prefix: &ObjectKey, epoch: Epoch, name: &str) -> Result<ObjectKey, NameError> {
    ObjectKey::new(&format!("{prefix}/e{:020}/{name}", epoch.as_u64()))
}
