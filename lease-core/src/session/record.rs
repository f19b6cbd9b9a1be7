//! What stands in the store: the object of a session, and a named lease (protocol, section 9).
//!
//! Both are one JSON object with every field of the [lease record](crate::record), read as strictly and
//! judged by the same verdicts, and more:
//!
//! | field | of | JSON | needed | under the MAC |
//! | --- | --- | --- | --- | --- |
//! | `object_key` | both | string, the [`ObjectKey`] that it is kept under | yes | yes |
//! | `life` | session | string, 32 lowercase hexadecimal digits | yes | yes |
//! | `state` | session | `"live"`, `"held_back"`, `"released"`, `"killed"` or `"tombstone"` | yes | yes |
//! | `session` | named lease | string, an [`InstanceId`]: whose session it is, or was, held under | yes | yes |
//! | `session_epoch` | named lease | integer, 1 to 2^64 − 1 | yes | yes |
//! | `session_life` | named lease | string, 32 lowercase hexadecimal digits | yes | yes |
//! | `held_back` | named lease | `true` | no | yes |
//!
//! Of the fields that all records have, `epoch` is that of the life in a session, and the fencing token
//! in a named lease. `holder` is there while a session is live or held back, and it is the instance
//! that the key names; in a named lease it is `session`, or `""` once it was released. A record that
//! contradicts itself in this is unreadable.
//!
//! A cluster has many of both, and whoever can write can also copy. So each says, under the MAC, where
//! it is kept: read under another key it is [`Forged`](crate::auth::Verdict::Forged), though its MAC
//! verifies, and also where there is no secret. The MAC covers, in the notation of
//! [`canonical_bytes`](crate::auth::canonical_bytes):
//!
//! ```text
//! session     = field("holdfast session v1")     lease fields
//!               field(object_key) field(life) field(state)
//! named lease = field("holdfast named lease v1") lease fields
//!               field(object_key) field(session) field(session_epoch) field(session_life)
//!               field(held_back)
//! lease fields = field(cluster) field(epoch) field(holder) field(ttl in ms)
//!                field(last_snapshot_epoch) field(last_snapshot_at)
//! ```
//!
//! Nonces are covered as the text that stands there; `held_back` is the text `true`, or absent.

use super::facts::{Life, SessionState};
use crate::{
    auth::{Canonical, Kind},
    json::{self, Object},
    key::{InstanceId, ObjectKey},
    record::{
        KeyedRecord, LeaseRecord, Nonce, Record, Sealed, Unreadable,
        decode::{self, EPOCH, NONCE},
    },
};
use bytes::Bytes;
use serde_json::value::RawValue;

/// The object of a session, as it stands in the store.
///
/// Every one that does not contradict itself (see the [module](self)) reads back as itself.
///
/// ```
/// use lease_core::{
///     auth::{Authenticator, Verdict}, key::{ClusterName, InstanceId}, record::Record,
///     session::{SessionState, record::SessionRecord},
/// };
///
/// let text = br#"{"cluster":"orders","holder":"s-1","epoch":7,"seq":4,"ttl_seconds":30,
///     "object_key":"orders/sessions/s-1.json",
///     "life":"00112233445566778899aabbccddeeff","state":"live"}"#;
/// let cluster = ClusterName::new("orders")?;
/// let key = cluster.session_key(&InstanceId::new("s-1")?);
/// let judged = Authenticator::new(cluster, None).judge_at::<SessionRecord>(text, &key);
/// assert_eq!(judged.verdict, Verdict::Unsigned);
/// assert_eq!(judged.record.unwrap().state, SessionState::Live);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SessionRecord {
    /// What all records say; the epoch is that of the life.
    pub lease: LeaseRecord,
    /// Where it is kept.
    pub object_key: ObjectKey,
    /// What the life is known by.
    pub life: Nonce,
    /// What it says of that life.
    pub state: SessionState,
}

/// A named lease, as it stands in the store.
///
/// Every one that does not contradict itself (see the [module](self)) reads back as itself.
///
/// ```
/// use lease_core::{
///     auth::{Authenticator, Objection, Verdict}, key::{ClusterName, LeaseName},
///     session::record::NamedLeaseRecord,
/// };
///
/// let text = br#"{"cluster":"orders","holder":"s-1","epoch":7,"seq":0,"ttl_seconds":30,
///     "object_key":"orders/leases/shard-7.json","session":"s-1","session_epoch":3,
///     "session_life":"00112233445566778899aabbccddeeff"}"#;
/// let cluster = ClusterName::new("orders")?;
/// let auth = Authenticator::new(cluster.clone(), None);
/// let judge = |name: &str| {
///     let key = cluster.named_lease_key(&LeaseName::new(name)?);
///     Ok::<_, lease_core::key::NameError>(auth.judge_at::<NamedLeaseRecord>(text, &key))
/// };
/// assert_eq!(judge("shard-7")?.verdict, Verdict::Unsigned);
/// let copied = judge("shard-8")?;                       // somebody copied the file
/// assert_eq!((copied.verdict, copied.why), (Verdict::Forged, Some(Objection::OtherKey)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedLeaseRecord {
    /// What all records say; the epoch is the lease's own, its fencing token.
    pub lease: LeaseRecord,
    /// Where it is kept.
    pub object_key: ObjectKey,
    /// Whose session it is, or was, held under.
    pub session: InstanceId,
    /// Which life of that session.
    pub life: Life,
    /// Whoever takes it from there holds back, as its holder did.
    pub held_back: bool,
}

impl Record for SessionRecord {
    fn decode(content: &[u8]) -> Result<Self, Unreadable> {
        let mut fields = decode::fields(content)?;
        let record = Self {
            lease: decode::lease(&mut fields)?,
            object_key: object_key(&mut fields)?,
            life: fields.needed("life", NONCE, decode::nonce)?,
            state: fields
                .needed("state", STATE, |value| SessionState::of(&json::string(value)?))?,
        };
        let kept_for = |id: &InstanceId| record.lease.cluster.session_key(id) == record.object_key;
        let is_coherent = match &record.lease.holder {
            Some(holder) => record.state.is_renewed() && kept_for(holder),
            None => !record.state.is_renewed(),
        };
        if is_coherent { Ok(record) } else { Err(contradicts(SESSION_HOLDER)) }
    }

    fn encode(&self) -> Bytes {
        self.lease.encode_with(|out| {
            out.text("object_key", self.object_key.as_str());
            out.text("life", &self.life.to_string());
            out.text("state", self.state.as_str());
        })
    }
}

impl Record for NamedLeaseRecord {
    fn decode(content: &[u8]) -> Result<Self, Unreadable> {
        let mut fields = decode::fields(content)?;
        let record = Self {
            lease: decode::lease(&mut fields)?,
            object_key: object_key(&mut fields)?,
            session: fields.needed("session", "an instance id", instance)?,
            life: Life {
                epoch: fields.needed("session_epoch", EPOCH, json::epoch)?,
                nonce: fields.needed("session_life", NONCE, decode::nonce)?,
            },
            held_back: fields.optional("held_back", "true, or absent", truth)?.is_some(),
        };
        match &record.lease.holder {
            Some(holder) if *holder != record.session => Err(contradicts(LEASE_HOLDER)),
            _ => Ok(record),
        }
    }

    fn encode(&self) -> Bytes {
        self.lease.encode_with(|out| {
            out.text("object_key", self.object_key.as_str());
            out.text("session", self.session.as_str());
            out.raw("session_epoch", self.life.epoch);
            out.text("session_life", &self.life.nonce.to_string());
            if self.held_back {
                out.raw("held_back", true);
            }
        })
    }
}

impl Sealed for SessionRecord {
    fn lease(&self) -> &LeaseRecord {
        &self.lease
    }

    fn lease_mut(&mut self) -> &mut LeaseRecord {
        &mut self.lease
    }

    fn canonical(&self) -> Vec<u8> {
        let Self { lease, object_key, life, state } = self;
        Canonical::of_lease(Kind::Session, lease)
            .text(Some(object_key.as_str()))
            .text(Some(&life.to_string()))
            .text(Some(state.as_str()))
            .finish()
    }
}

impl Sealed for NamedLeaseRecord {
    fn lease(&self) -> &LeaseRecord {
        &self.lease
    }

    fn lease_mut(&mut self) -> &mut LeaseRecord {
        &mut self.lease
    }

    fn canonical(&self) -> Vec<u8> {
        let Self { lease, object_key, session, life, held_back } = self;
        Canonical::of_lease(Kind::NamedLease, lease)
            .text(Some(object_key.as_str()))
            .text(Some(session.as_str()))
            .integer(Some(life.epoch.as_u64()))
            .text(Some(&life.nonce.to_string()))
            .text(held_back.then_some("true"))
            .finish()
    }
}

impl KeyedRecord for SessionRecord {
    fn object_key(&self) -> &ObjectKey {
        &self.object_key
    }
}

impl KeyedRecord for NamedLeaseRecord {
    fn object_key(&self) -> &ObjectKey {
        &self.object_key
    }
}

impl SessionState {
    pub(super) const ALL: [Self; 5] =
        [Self::HeldBack, Self::Killed, Self::Live, Self::Released, Self::Tombstone];

    /// As it stands in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HeldBack => "held_back",
            Self::Killed => "killed",
            Self::Live => "live",
            Self::Released => "released",
            Self::Tombstone => "tombstone",
        }
    }

    /// Whether its holder renews it, so that the record names one.
    #[must_use]
    pub const fn is_renewed(self) -> bool {
        matches!(self, Self::HeldBack | Self::Live)
    }

    fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

const STATE: &str = "live, held_back, released, killed or tombstone";
const SESSION_HOLDER: &str = "the instance that the object's key names while the session is live or held back, and else empty";
const LEASE_HOLDER: &str = "the instance whose session it is held under, or empty";

fn contradicts(expected: &'static str) -> Unreadable {
    Unreadable::Field { field: "holder", expected }
}

fn object_key(fields: &mut Object<'_>) -> Result<ObjectKey, Unreadable> {
    fields.needed("object_key", "the key of an object", |value| {
        ObjectKey::new(&json::string(value)?).ok()
    })
}

fn instance(value: &RawValue) -> Option<InstanceId> {
    InstanceId::new(&json::string(value)?).ok()
}

/// One spelling of one fact: what is not so is absent.
fn truth(value: &RawValue) -> Option<()> {
    json::boolean(value)?.then_some(())
}
