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

/// What never changes in the records of one instance, and the keys that authenticate them.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) auth: Authenticator,
    pub(super) instance: InstanceId,
    pub(super) name: Label,
    pub(super) ttl: Ttl,
}

/// A read that was judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) reply: Reply,
    /// The record was written under another secret than one's own.
    pub(super) foreign_key: bool,
}

impl Wire {
    /// The bytes of a record to be written.
    pub(super) fn encode(&self, draft: &Draft) -> Bytes {
        let mut record = LeaseRecord {
            cluster: self.auth.cluster().clone(),
            holder: draft.held.then(|| self.instance.clone()),
            holder_name: self.name.clone(),
            epoch: draft.epoch,
            seq: draft.seq,
            nonce: Some(draft.nonce),
            renewed_at: rfc3339(draft.renewed_at),
            ttl: self.ttl,
            key_id: None,
            last_snapshot: draft.last_snapshot.clone(),
            mac: None,
        };
        self.auth.seal(&mut record, draft.sign);
        record.encode()
    }

    /// What a read means to the machine.
    pub(super) fn judge(&self, result: Result<Read, StoreError>) -> Judged {
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
        let facts = record.map(|record| {
            let LeaseRecord { holder, epoch, seq, nonce, ttl, last_snapshot, .. } = record;
            let facts = Facts::new(holder, epoch, seq, nonce, ttl.duration());
            Arc::new(Facts { last_snapshot, ..facts })
        });
        (Sighting::Found { version, verdict, facts, age }, foreign_key)
    }
}
