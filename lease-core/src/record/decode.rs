//! Reading a record that anybody may have written.

use super::{Label, LeaseRecord, Nonce, SnapshotMark, Ttl};
use crate::{
    json::{self, Fault, Object},
    key::{ClusterName, InstanceId},
    store::MAX_OBJECT_BYTES,
};
use fencing::Epoch;
use serde_json::value::RawValue;

/// Why content is no lease record. Nothing of the content is repeated: it may be anything.
///
/// It says nothing about who holds the lease: what is unreadable counts for nothing, is waited out,
/// and may be replaced by version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// A key stands twice in one object, in whatever spelling, known or not.
    #[error("the lease record has a key twice; {WAITED_OUT}")]
    DuplicateKey,
    /// A field is not what it must be.
    #[error("the lease record's `{field}` is not {expected}; {WAITED_OUT}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A field that every record has is missing.
    #[error("the lease record has no `{field}`; {WAITED_OUT}")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// It is JSON, but not an object.
    #[error("the content is no JSON object; {WAITED_OUT}")]
    NotAnObject,
    /// It is not UTF-8.
    #[error("the content is not UTF-8; {WAITED_OUT}")]
    NotUtf8,
    /// It is not JSON, or something follows the object.
    #[error("the content is not one JSON object (line {line}, column {column}); {WAITED_OUT}")]
    Syntax {
        /// Where reading stopped, from 1; 0 if at the very start.
        line: usize,
        /// Where in that line, in bytes, likewise.
        column: usize,
    },
    /// Arrays and objects are nested too deep in a field.
    #[error("the content is nested more than 32 levels deep; {WAITED_OUT}")]
    TooDeep,
    /// It is larger than [`MAX_OBJECT_BYTES`].
    #[error("the content is larger than 64 KiB; {WAITED_OUT}")]
    TooLarge,
}

const WAITED_OUT: &str = "it counts for nothing, is waited out and may be replaced";

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::DuplicateKey => Self::DuplicateKey,
            Fault::NotAnObject => Self::NotAnObject,
            Fault::Syntax { line, column } => Self::Syntax { line, column },
            Fault::TooDeep => Self::TooDeep,
        }
    }
}

pub(super) fn record(content: &[u8]) -> Result<LeaseRecord, Unreadable> {
    if content.len() > MAX_OBJECT_BYTES {
        return Err(Unreadable::TooLarge);
    }
    let text = std::str::from_utf8(content).map_err(|_| Unreadable::NotUtf8)?;
    let mut fields = Fields(Object::parse(text)?);
    Ok(LeaseRecord {
        cluster: fields.needed("cluster", "a cluster name", cluster)?,
        holder: fields.needed("holder", "an instance id or empty", holder)?,
        holder_name: fields.label("holder_name")?.unwrap_or_default(),
        epoch: fields.needed("epoch", "an integer from 1 to 2^64 - 1", epoch)?,
        seq: fields.needed("seq", "an integer from 0 to 2^64 - 1", json::integer)?,
        nonce: fields.optional("nonce", "a string of 32 lowercase hexadecimal digits", nonce)?,
        renewed_at: fields.label("renewed_at")?.unwrap_or_default(),
        ttl: fields.needed("ttl_seconds", TTL, |value| Ttl::from_json(value.get()))?,
        key_id: fields.label("key_id")?,
        last_snapshot: fields.snapshot_mark()?,
        mac: fields.label("mac")?,
    })
}

const TTL: &str = "a number above 0, at most 86400, with at most three decimals and no exponent";

struct Fields<'a>(Object<'a>);

impl<'a> Fields<'a> {
    fn optional<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        // `null` is not absence: it is a value of the wrong type.
        self.0
            .take(field)
            .map(|value| read(value).ok_or(Unreadable::Field { field, expected }))
            .transpose()
    }

    fn needed<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<T, Unreadable> {
        self.optional(field, expected, read)?.ok_or(Unreadable::Missing { field })
    }

    fn label(&mut self, field: &'static str) -> Result<Option<Label>, Unreadable> {
        self.optional(field, "a string of at most 128 bytes without control characters", |value| {
            Label::new(&json::string(value)?).ok()
        })
    }

    fn snapshot_mark(&mut self) -> Result<Option<SnapshotMark>, Unreadable> {
        let (epoch_field, at_field) = ("last_snapshot_epoch", "last_snapshot_at");
        let epoch = self.optional(epoch_field, "an integer from 1 to 2^64 - 1", epoch)?;
        let at = self.label(at_field)?;
        match (epoch, at) {
            (Some(epoch), Some(at)) => Ok(Some(SnapshotMark { epoch, at })),
            (None, None) => Ok(None),
            // Half a mark vouches for nothing, and dropping it would pass for "no snapshot yet".
            (None, Some(_)) => Err(Unreadable::Missing { field: epoch_field }),
            (Some(_), None) => Err(Unreadable::Missing { field: at_field }),
        }
    }
}

fn cluster(value: &RawValue) -> Option<ClusterName> {
    ClusterName::new(&json::string(value)?).ok()
}

fn holder(value: &RawValue) -> Option<Option<InstanceId>> {
    let text = json::string(value)?;
    if text.is_empty() { Some(None) } else { InstanceId::new(&text).ok().map(Some) }
}

fn epoch(value: &RawValue) -> Option<Epoch> {
    json::integer(value).and_then(Epoch::new)
}

fn nonce(value: &RawValue) -> Option<Nonce> {
    Nonce::from_hex(&json::string(value)?)
}
