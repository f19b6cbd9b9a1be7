//! Reading a record that anybody may have written.

use super::{Label, LeaseRecord, Nonce, SnapshotMark, Ttl};
use crate::{
    json::{self, Object, Unreadable},
    key::{ClusterName, InstanceId},
    store::MAX_OBJECT_BYTES,
};
use serde_json::value::RawValue;

/// The fields of one object of the size that any record may have.
pub(crate) fn fields(content: &[u8]) -> Result<Object<'_>, Unreadable> {
    Object::from_bytes(content, MAX_OBJECT_BYTES)
}

/// Takes out the fields that every kind of record has.
pub(crate) fn lease(fields: &mut Object<'_>) -> Result<LeaseRecord, Unreadable> {
    Ok(LeaseRecord {
        cluster: fields.needed("cluster", "a cluster name", cluster)?,
        holder: fields.needed("holder", "an instance id or empty", holder)?,
        holder_name: label(fields, "holder_name")?.unwrap_or_default(),
        epoch: fields.needed("epoch", EPOCH, json::epoch)?,
        seq: fields.needed("seq", "an integer from 0 to 2^64 - 1", json::integer)?,
        nonce: fields.optional("nonce", NONCE, nonce)?,
        renewed_at: label(fields, "renewed_at")?.unwrap_or_default(),
        ttl: fields.needed("ttl_seconds", TTL, |value| Ttl::from_json(value.get()))?,
        key_id: label(fields, "key_id")?,
        last_snapshot: snapshot_mark(fields)?,
        mac: label(fields, "mac")?,
    })
}

pub(crate) const EPOCH: &str = "an integer from 1 to 2^64 - 1";
pub(crate) const NONCE: &str = "a string of 32 lowercase hexadecimal digits";
const TTL: &str = "a number above 0, at most 86400, with at most three decimals and no exponent";

fn label(fields: &mut Object<'_>, field: &'static str) -> Result<Option<Label>, Unreadable> {
    fields.optional(field, "a string of at most 128 bytes without control characters", |value| {
        Label::new(&json::string(value)?).ok()
    })
}

fn snapshot_mark(fields: &mut Object<'_>) -> Result<Option<SnapshotMark>, Unreadable> {
    let (epoch_field, at_field) = ("last_snapshot_epoch", "last_snapshot_at");
    let epoch = fields.optional(epoch_field, EPOCH, json::epoch)?;
    let at = label(fields, at_field)?;
    match (epoch, at) {
        (Some(epoch), Some(at)) => Ok(Some(SnapshotMark { epoch, at })),
        (None, None) => Ok(None),
        // Half a mark vouches for nothing, and dropping it would pass for "no snapshot yet".
        (None, Some(_)) => Err(Unreadable::Missing { field: epoch_field }),
        (Some(_), None) => Err(Unreadable::Missing { field: at_field }),
    }
}

fn cluster(value: &RawValue) -> Option<ClusterName> {
    ClusterName::new(&json::string(value)?).ok()
}

fn holder(value: &RawValue) -> Option<Option<InstanceId>> {
    let text = json::string(value)?;
    if text.is_empty() { Some(None) } else { InstanceId::new(&text).ok().map(Some) }
}

pub(crate) fn nonce(value: &RawValue) -> Option<Nonce> {
    Nonce::from_hex(&json::string(value)?)
}
