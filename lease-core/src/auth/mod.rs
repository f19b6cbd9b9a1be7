//! Who may be believed: the cluster's secret, the MAC of a record, and the verdict on what was read
//! (protocol, section 6).
//!
//! ```text
//! subkey(info) = HKDF-SHA256(salt = none, ikm = secret, info, 32 bytes)           RFC 5869
//! mac          = HMAC-SHA256(subkey("ha-lease"), canonical(record))               RFC 2104
//! key_id       = the first 16 bytes of SHA-256(subkey("ha-key-id"))
//! snapshots    = sealed under subkey("ha-snapshot"), by the crate `snapshot-format`
//! ```
//!
//! All of them are written in lowercase hexadecimal. [`canonical_bytes`] says what the MAC covers.
//! A MAC binds a record to the secret and to its cluster's name; it does not make it *new*: an old
//! record put back verifies, which is why epochs and versions decide and a MAC never does.

mod canonical;
mod secret;
#[cfg(test)]
mod vectors;

use crate::{
    hex,
    key::{ClusterName, ObjectKey},
    record::{KeyedRecord, Label, LeaseRecord, Record, Unreadable},
};
pub use canonical::canonical_bytes;
pub(crate) use canonical::{Canonical, Kind};
use hmac::{Hmac, KeyInit as _, Mac as _};
pub use secret::{ClusterSecret, MIN_SECRET_BYTES, SecretError};
use secret::{Purpose, Subkey};
use sha2::Sha256;
use std::{fmt, sync::Arc};

/// Signs the records of one cluster and judges what is read in their place.
///
/// Without a secret nothing is signed, and every readable record of the cluster is [`Unsigned`]
/// (which is then acceptable, see [`acceptable`]).
///
/// [`Unsigned`]: Verdict::Unsigned
///
/// ```
/// use lease_core::{
///     auth::{Authenticator, ClusterSecret, Verdict},
///     key::ClusterName,
///     record::LeaseRecord,
/// };
///
/// let cluster = ClusterName::new("orders")?;
/// let secret = ClusterSecret::new(b"0123456789abcdef0123456789abcdef")?;
/// let ours = Authenticator::new(cluster.clone(), Some(&secret));
///
/// let mut record = LeaseRecord::decode(
///     br#"{"cluster":"orders","holder":"s-1","epoch":7,"seq":1,"ttl_seconds":30}"#,
/// )?;
/// ours.seal(&mut record, true);
/// assert_eq!(ours.judge(&record.encode()).verdict, Verdict::Authentic);
///
/// record.epoch = record.epoch.next()?;                  // somebody edits it
/// assert_eq!(ours.judge(&record.encode()).verdict, Verdict::Forged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Authenticator {
    cluster: ClusterName,
    keys: Option<Arc<Keys>>,
}

struct Keys {
    /// Keyed with the lease's subkey, once: that is two of the six blocks that a MAC hashes.
    lease: Hmac<Sha256>,
    id: Label,
}

impl Authenticator {
    /// The authenticator of `cluster`, with the cluster's secret if it has one.
    #[must_use]
    pub fn new(cluster: ClusterName, secret: Option<&ClusterSecret>) -> Self {
        Self {
            cluster,
            keys: secret
                .map(|secret| Arc::new(Keys::new(&secret.subkey(Purpose::Lease), secret.id()))),
        }
    }

    /// The cluster whose records these are.
    #[must_use]
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// What tells the secret from another without a hint at it: 32 hexadecimal digits.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.keys.as_ref().map(|keys| keys.id.as_str())
    }

    /// Whether there is a secret.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        self.keys.is_some()
    }

    /// Sets the record's `key_id` and, if `sign` and there is a secret, its `mac`; removes what was
    /// there otherwise.
    ///
    /// Call it last: every later change of a covered field makes the record [`Verdict::Forged`].
    /// `sign` is `false` for a lease that was taken over from one that is not trusted, until the
    /// takeover is confirmed: it would vouch for a last snapshot that nobody authenticated.
    /// A record of another cluster is never signed.
    pub fn seal<R: Record>(&self, record: &mut R, sign: bool) {
        let is_ours = record.lease().cluster == self.cluster;
        let signing = self.keys.as_ref().filter(|_| sign && is_ours);
        let mac = signing.map(|keys| keys.sign(record));
        let lease = record.lease_mut();
        lease.key_id = self.keys.as_ref().map(|keys| keys.id.clone());
        lease.mac = mac;
    }

    /// Reads content as the lease of the cluster and says what it is worth. Pure: the same content
    /// has the same judgement.
    #[must_use]
    pub fn judge(&self, content: &[u8]) -> Judgement {
        self.judge_with(content, |_| true)
    }

    /// The same of what is kept at `key`, as a record of a kind that a cluster has many of.
    ///
    /// One that says that it is kept elsewhere was copied here: it is [`Verdict::Forged`], whatever
    /// its MAC.
    #[must_use]
    pub fn judge_at<R: KeyedRecord>(&self, content: &[u8], key: &ObjectKey) -> Judgement<R> {
        self.judge_with(content, |record: &R| record.object_key() == key)
    }

    fn judge_with<R: Record>(
        &self,
        content: &[u8],
        belongs: impl FnOnce(&R) -> bool,
    ) -> Judgement<R> {
        let record = match R::decode(content) {
            Ok(record) => record,
            Err(why) => return Judgement::new(Verdict::Unreadable, Some(why.into()), None),
        };
        let (verdict, why) = self.weigh(&record, belongs(&record));
        let foreign_key =
            why == Some(Objection::MacMismatch) && self.names_another_key(record.lease());
        Judgement { foreign_key, ..Judgement::new(verdict, why, Some(record)) }
    }

    fn weigh<R: Record>(&self, record: &R, belongs: bool) -> (Verdict, Option<Objection>) {
        if record.lease().cluster != self.cluster {
            return (Verdict::Forged, Some(Objection::OtherCluster));
        }
        if !belongs {
            return (Verdict::Forged, Some(Objection::OtherKey));
        }
        match (&record.lease().mac, &self.keys) {
            (None, _) => (Verdict::Unsigned, Some(Objection::NoMac)),
            (Some(_), None) => (Verdict::Unsigned, Some(Objection::NoSecret)),
            (Some(mac), Some(keys)) if keys.verifies(record, mac) => (Verdict::Authentic, None),
            (Some(_), Some(_)) => (Verdict::Forged, Some(Objection::MacMismatch)),
        }
    }

    fn names_another_key(&self, record: &LeaseRecord) -> bool {
        matches!((&record.key_id, self.key_id()), (Some(theirs), Some(ours)) if **theirs != *ours)
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, keys: _ } = self;
        f.debug_struct("Authenticator")
            .field("cluster", cluster)
            .field("key_id", &self.key_id())
            .finish_non_exhaustive()
    }
}

impl Keys {
    fn new(lease: &Subkey, id: Label) -> Self {
        let lease = Hmac::new_from_slice(lease.bytes()).expect("HMAC takes keys of any length");
        Self { lease, id }
    }

    fn mac<R: Record>(&self, record: &R) -> Hmac<Sha256> {
        let mut mac = self.lease.clone();
        mac.update(&canonical_bytes(record));
        mac
    }

    fn sign<R: Record>(&self, record: &R) -> Label {
        let (mac, mut digits) = (self.mac(record).finalize().into_bytes(), [0; 64]);
        let digits = hex::encode_into(&mac, &mut digits);
        Label::new(digits).expect("64 hexadecimal digits are a label")
    }

    /// In constant time for what depends on the key. Only the full length counts, in one spelling.
    fn verifies<R: Record>(&self, record: &R, mac: &str) -> bool {
        hex::decode::<32>(mac).is_some_and(|mac| self.mac(record).verify_slice(&mac).is_ok())
    }
}

/// What content is worth that was read where the lease is kept.
///
/// [`acceptable`] says which of them may be believed. A verdict is no error: what cannot be
/// believed is waited out and replaced like a lease whose holder is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// A record of this cluster whose MAC verifies.
    Authentic,
    /// A record with a MAC that does not verify, whatever its length; or one that names another
    /// cluster, or another key than it was read from.
    ///
    /// The latter two also without a secret: whoever writes into this cluster's key writes this
    /// cluster's name, so a record that names another was copied or is the result of two clusters
    /// that were given one key, and its holder and epoch say nothing about this lease.
    Forged,
    /// No record at all.
    Unreadable,
    /// A record of this cluster without a MAC, or with one that cannot be checked since there is no
    /// secret here.
    Unsigned,
}

/// What speaks against what was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Objection {
    /// Its MAC is not the one that the cluster's secret gives.
    #[error(
        "the lease record's mac does not verify: it was changed by hand, or written with another \
         secret; give every instance of the cluster the same secret"
    )]
    MacMismatch,
    /// It has no MAC.
    #[error(
        "the lease record is not signed; it counts only while nothing signed was ever seen for the \
         cluster"
    )]
    NoMac,
    /// It has a MAC, and there is no secret here to check it with.
    #[error(
        "the lease record is signed, but this instance has no secret to check it with; give it the \
         cluster's secret"
    )]
    NoSecret,
    /// It names another cluster.
    #[error(
        "the lease record names another cluster; look for two clusters that share one key, or for a \
         record that was copied by hand"
    )]
    OtherCluster,
    /// It says that it is kept under another key.
    #[error(
        "the record says that it is kept under another key; it was copied by hand, and says nothing \
         about what is kept here"
    )]
    OtherKey,
    /// It is no record.
    #[error(
        "what is kept as the lease record is {0}; it counts for nothing, is waited out and may be \
         replaced"
    )]
    Unreadable(#[from] Unreadable),
}

/// A verdict, and what it is about.
///
/// ```
/// use lease_core::auth::{Authenticator, Objection, Verdict};
///
/// let auth = Authenticator::new("orders".parse()?, None);
/// let judged = auth.judge(br#"{"cluster":"billing","holder":"","epoch":7,"seq":1,"ttl_seconds":30}"#);
/// assert_eq!((judged.verdict, judged.why), (Verdict::Forged, Some(Objection::OtherCluster)));
/// assert!(judged.record.is_some());               // there for people to look at, not to be believed
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Judgement<R = LeaseRecord> {
    /// What the content is worth.
    pub verdict: Verdict,
    /// The record, unless it is unreadable. Believe it only if the verdict is [`acceptable`].
    pub record: Option<R>,
    /// What speaks against it; `None` only for [`Verdict::Authentic`].
    pub why: Option<Objection>,
    /// The MAC does not verify and `key_id` is not this instance's: the instance was most likely
    /// given another secret, and must not start (it could not read the cluster's snapshots either).
    pub foreign_key: bool,
}

impl<R> Judgement<R> {
    fn new(verdict: Verdict, why: Option<Objection>, record: Option<R>) -> Self {
        Self { verdict, record, why, foreign_key: false }
    }
}

/// Whether a record with this verdict may be believed: its epoch, its ttl, its release.
///
/// | verdict | no secret | a secret, nothing authenticated seen | a secret, authenticated seen |
/// | --- | --- | --- | --- |
/// | [`Authentic`](Verdict::Authentic) | – | yes | yes |
/// | [`Unsigned`](Verdict::Unsigned) | yes | yes | no |
/// | [`Forged`](Verdict::Forged) | no | no | no |
/// | [`Unreadable`](Verdict::Unreadable) | no | no | no |
///
/// `seen_authenticated` is whether anything authenticated was *ever* seen for the cluster, by this
/// instance (its history) or among the cluster's snapshots. Once it is, a MAC that was taken off
/// says that somebody wants the record believed without one.
///
/// What is not acceptable is never believed: it is waited out, and it may be replaced.
///
/// ```
/// use lease_core::auth::{Verdict, acceptable};
///
/// assert!(acceptable(Verdict::Unsigned, true, false));      // trust on first use
/// assert!(!acceptable(Verdict::Unsigned, true, true));      // and never again
/// ```
#[must_use]
pub const fn acceptable(verdict: Verdict, has_secret: bool, seen_authenticated: bool) -> bool {
    match verdict {
        Verdict::Authentic => true,
        Verdict::Unsigned => !has_secret || !seen_authenticated,
        Verdict::Forged | Verdict::Unreadable => false,
    }
}
