//! The lease record: what stands in the store (protocol, section 6).
//!
//! One JSON object, at most 64 KiB:
//!
//! | field | JSON | needed | under the MAC |
//! | --- | --- | --- | --- |
//! | `cluster` | string, a [`ClusterName`] | yes | yes |
//! | `holder` | string, an [`InstanceId`], or `""` for *released* | yes | yes |
//! | `holder_name` | string, a [`Label`] | no: `""` | no |
//! | `epoch` | integer, 1 to 2^64 − 1 | yes | yes |
//! | `seq` | integer, 0 to 2^64 − 1 | yes | no |
//! | `nonce` | string, 32 lowercase hexadecimal digits | no | no |
//! | `renewed_at` | string, a [`Label`], for people only | no: `""` | no |
//! | `ttl_seconds` | number with at most three decimals, above 0, at most 86400 | yes | yes, in ms |
//! | `key_id` | string, a [`Label`] | no | no |
//! | `last_snapshot_epoch`, `last_snapshot_at` | integer as `epoch`; string, a [`Label`] | both or none | yes |
//! | `mac` | string, a [`Label`]; 64 lowercase hexadecimal digits if it is to verify | no | |
//!
//! Unknown fields are ignored, so that a later version can add some. Everything else that is not
//! exactly this is [`Unreadable`]: a *verdict* about the lease, which can still be replaced by
//! version, and never a panic. What is strict here is strict so that no two readers can read one
//! text differently.
//!
//! A field that one reader needs and another ignores is a hazard, so a field that changes what an
//! *old* reader must do cannot be added; a new kind of record gets a new kind label under the MAC.

pub(crate) mod decode;
mod kind;
mod value;

pub use crate::json::Unreadable;
use crate::{
    auth::{Canonical, Kind},
    hex,
    json::Writer,
    key::{ClusterName, InstanceId},
};
use bytes::Bytes;
use fencing::Epoch;
pub(crate) use kind::Sealed;
pub use kind::{KeyedRecord, Record};
pub use value::{
    Label, LabelError, MAX_LABEL_BYTES, Nonce, TenureMark, TenureTag, Ttl, TtlError, rfc3339,
};

/// The newest snapshot that active instances wrote, as the lease vouches for it.
///
/// Both are under the MAC. They are handed on from lease to lease until an active instance names a
/// newer one.
///
/// What is older is less: by epoch, then by time, which is compared as text and with no clock. Times
/// of the one spelling that snapshots have compare as they should.
///
/// ```
/// use lease_core::{fencing::Epoch, record::{Label, SnapshotMark}};
///
/// let mark = SnapshotMark { epoch: Epoch::MIN, at: Label::new("2026-10-12T09:58:41.517Z")? };
/// let newer = SnapshotMark { at: Label::new("2026-10-12T09:58:41.518Z")?, ..mark.clone() };
/// assert!(mark < newer);
/// assert!(newer < SnapshotMark { epoch: newer.epoch.next().unwrap(), ..mark });
/// # Ok::<(), lease_core::record::LabelError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SnapshotMark {
    // The order of the fields is the order of marks.
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// When, as the snapshot's own header has it.
    pub at: Label,
}

/// A lease as it stands in the store.
///
/// Every value of this type can be written, and reads back as itself.
///
/// ```
/// use lease_core::{
///     fencing::Epoch,
///     key::{ClusterName, InstanceId},
///     record::{Label, LeaseRecord, Nonce, Ttl},
/// };
/// use std::time::Duration;
///
/// let record = LeaseRecord {
///     cluster: ClusterName::new("orders")?,
///     holder: Some(InstanceId::random()?),
///     holder_name: Label::new("orders-0")?,
///     epoch: Epoch::MIN,
///     seq: 1,
///     nonce: Some(Nonce::random()?),
///     renewed_at: Label::default(),
///     ttl: Ttl::new(Duration::from_secs(30))?,
///     key_id: None,
///     last_snapshot: None,
///     mac: None,
/// };
/// assert_eq!(LeaseRecord::decode(&record.encode())?, record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseRecord {
    /// The cluster whose lease this is.
    pub cluster: ClusterName,
    /// Who holds it; `None` once it was released.
    pub holder: Option<InstanceId>,
    /// What people call the holder. A label: two hosts may share it, and nothing compares it.
    pub holder_name: Label,
    /// The fencing token of the tenure.
    pub epoch: Epoch,
    /// Grows with every write of the tenure, so that every write has distinct content.
    pub seq: u64,
    /// Fresh random bits of this very write. Records of other programs have none.
    pub nonce: Option<Nonce>,
    /// When it was written, by the holder's wall clock. For people only; no decision reads it.
    pub renewed_at: Label,
    /// How long it is good for, as its holder counts.
    pub ttl: Ttl,
    /// Which secret the holder has, without a hint at what it is.
    pub key_id: Option<Label>,
    /// The newest snapshot of the cluster that the lease vouches for.
    pub last_snapshot: Option<SnapshotMark>,
    /// The MAC as it is written, whatever it is; [`Authenticator::judge`](crate::auth::Authenticator)
    /// says what it is worth.
    pub mac: Option<Label>,
}

impl LeaseRecord {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the content is not exactly one record of the documented form. It can be
    /// anything at all: nothing here panics, and memory and stack are bounded.
    pub fn decode(content: &[u8]) -> Result<Self, Unreadable> {
        decode::lease(&mut decode::fields(content)?)
    }

    /// The record as it is written: one line of JSON, below 4 KiB.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.encode_with(|_| {})
    }

    /// The record with the fields that its kind has beside, in front of the MAC.
    pub(crate) fn encode_with(&self, kind: impl FnOnce(&mut Writer)) -> Bytes {
        // The order of the fields keeps the text of a version the same for ever.
        let mut out = Writer::default();
        out.field("cluster").quoted(self.cluster.as_str());
        out.field("holder").quoted(self.holder.as_ref().map_or("", InstanceId::as_str));
        out.field("holder_name").quoted(&self.holder_name);
        out.field("epoch").value(self.epoch);
        out.field("seq").value(self.seq);
        if let Some(nonce) = &self.nonce {
            out.field("nonce").quoted(hex::encode_into(nonce.as_bytes(), &mut [0; 32]));
        }
        out.field("renewed_at").quoted(&self.renewed_at);
        out.field("ttl_seconds").value(self.ttl.to_json());
        if let Some(key_id) = &self.key_id {
            out.field("key_id").quoted(key_id);
        }
        if let Some(mark) = &self.last_snapshot {
            out.field("last_snapshot_epoch").value(mark.epoch);
            out.field("last_snapshot_at").quoted(&mark.at);
        }
        kind(&mut out);
        if let Some(mac) = &self.mac {
            out.field("mac").quoted(mac);
        }
        out.finish().into()
    }

    /// Whether it was released: nobody holds it.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.holder.is_none()
    }
}

impl Record for LeaseRecord {
    fn decode(content: &[u8]) -> Result<Self, Unreadable> {
        Self::decode(content)
    }

    fn encode(&self) -> Bytes {
        self.encode()
    }
}

impl Sealed for LeaseRecord {
    fn lease(&self) -> &LeaseRecord {
        self
    }

    fn lease_mut(&mut self) -> &mut LeaseRecord {
        self
    }

    fn canonical(&self) -> Vec<u8> {
        Canonical::of_lease(Kind::Lease, self).finish()
    }
}
