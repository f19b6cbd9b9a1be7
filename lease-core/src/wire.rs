//! Between the machine's words and the store's bytes: drafts become records, records become facts.

use crate::{
    auth::{Authenticator, Judgement, Verdict},
    key::InstanceId,
    machine::{Draft, Facts, Reply, Sighting},
    record::{Label, LeaseRecord, Ttl, rfc3339},
    store::{Read, StoreError, Version},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

/// Writes a machine's drafts as records of one instance, and judges what it reads for it.
///
/// Whoever drives a [`Machine`](crate::machine::Machine) by hand needs one; a `LeaseManager` has its
/// own.
///
/// ```
/// use lease_core::{
///     auth::{Authenticator, Verdict}, key::InstanceId, machine::{Reply, Sighting},
///     record::{Label, Ttl}, store::{Read, Version}, wire::Wire,
/// };
/// use std::time::Duration;
///
/// let wire = Wire {
///     auth: Authenticator::new("orders".parse()?, None),
///     instance: InstanceId::new("a")?,
///     name: Label::new("orders-0")?,
///     ttl: Ttl::new(Duration::from_secs(30))?,
/// };
/// let read = Read::Found { content: "junk".into(), version: Version::new("v1"), age: None };
/// let judged = wire.judge(Ok(read));
/// let Reply::Read(Sighting::Found { verdict, .. }) = judged.reply else { panic!() };
/// assert_eq!(verdict, Verdict::Unreadable);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Wire {
    /// The cluster, and the keys that authenticate its records.
    pub auth: Authenticator,
    /// Whose records they are.
    pub instance: InstanceId,
    /// A label for people.
    pub name: Label,
    /// The ttl they say.
    pub ttl: Ttl,
}

/// A read that was judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged<R = Reply> {
    /// What the machine is to be told.
    pub reply: R,
    /// The record was written under another secret than one's own.
    pub foreign_key: bool,
}

impl Wire {
    /// The bytes of a record to be written.
    #[must_use]
    pub fn encode(&self, draft: &Draft) -> Bytes {
        let mut record = self.record(draft, draft.held.then(|| self.instance.clone()));
        self.auth.seal(&mut record, draft.sign);
        record.encode()
    }

    /// What all kinds of records say, not sealed yet.
    pub(crate) fn record(&self, draft: &Draft, holder: Option<InstanceId>) -> LeaseRecord {
        LeaseRecord {
            cluster: self.auth.cluster().clone(),
            holder,
            holder_name: self.name.clone(),
            epoch: draft.epoch,
            seq: draft.seq,
            nonce: Some(draft.nonce),
            renewed_at: rfc3339(draft.renewed_at),
            ttl: self.ttl,
            key_id: None,
            last_snapshot: draft.last_snapshot.clone(),
            mac: None,
        }
    }

    /// What a read means to the machine. What is no record has a verdict like any other.
    #[must_use]
    pub fn judge(&self, result: Result<Read, StoreError>) -> Judged {
        let (sighting, foreign_key) = match result {
            Ok(Read::Found { content, version, age }) => self.found(&content, version, age),
            Ok(Read::Missing) => (Sighting::Missing, false),
            Ok(Read::NotModified) => (Sighting::NotModified, false),
            Err(StoreError::Corrupt { version, .. }) => {
                let verdict = Verdict::Unreadable;
                (Sighting::Found { version, verdict, facts: None, age: None }, false)
            }
            Err(error) => {
                return Judged { reply: Reply::Failed(error.kind()), foreign_key: false };
            }
        };
        Judged { reply: Reply::Read(sighting), foreign_key }
    }

    fn found(&self, content: &[u8], version: Version, age: Option<Duration>) -> (Sighting, bool) {
        let Judgement { verdict, record, foreign_key, .. } = self.auth.judge(content);
        let facts = record.map(|record| Arc::new(record.into()));
        (Sighting::Found { version, verdict, facts, age }, foreign_key)
    }
}

impl From<LeaseRecord> for Facts {
    fn from(record: LeaseRecord) -> Self {
        let LeaseRecord { holder, epoch, seq, nonce, ttl, last_snapshot, .. } = record;
        let facts = Self::new(holder, epoch, seq, nonce, ttl.duration());
        Self { last_snapshot, ..facts }
    }
}
