//! Between the words of the machine of a session and the store's bytes.

#[cfg(test)]
mod tests;

use super::{
    facts::{NamedDraft, NamedFacts, SessionDraft, SessionFacts},
    io::{Draft, Object, Reply, Sighting},
    record::{NamedLeaseRecord, SessionRecord},
};
use crate::{
    auth::{Judgement, Verdict},
    key::ObjectKey,
    record::{KeyedRecord, Record},
    store::{Read, StoreError},
    wire::{Judged, Wire},
};
use bytes::Bytes;
use std::sync::Arc;

/// For whoever drives a [`SessionMachine`](super::SessionMachine).
///
/// ```
/// use lease_core::{
///     auth::{Authenticator, Verdict}, key::InstanceId, record::{Label, Ttl},
///     session::{Object, Reply, Sighting}, store::{Read, Version}, wire::Wire,
/// };
/// use std::time::Duration;
///
/// let wire = Wire {
///     auth: Authenticator::new("orders".parse()?, None),
///     instance: InstanceId::new("a")?,
///     name: Label::new("orders-0")?,
///     ttl: Ttl::new(Duration::from_secs(30))?,
/// };
/// let object = Object::Session(InstanceId::new("b")?);
/// assert_eq!(wire.object_key(&object).as_str(), "orders/sessions/b.json");
/// let read = Read::Found { content: "junk".into(), version: Version::new("v1"), age: None };
/// let judged = wire.judge_object(Ok(read), &object);
/// let Reply::Session(Sighting::Found { verdict, .. }) = judged.reply else { panic!() };
/// assert_eq!(verdict, Verdict::Unreadable);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Wire {
    /// Where an object of a session is kept.
    #[must_use]
    pub fn object_key(&self, object: &Object) -> ObjectKey {
        match object {
            Object::Lease(key) => key.clone(),
            Object::Session(instance) => self.auth.cluster().session_key(instance),
        }
    }

    /// The bytes of a record that is to be kept under `key`.
    #[must_use]
    pub fn encode_object(&self, draft: &Draft, key: &ObjectKey) -> Bytes {
        match draft {
            Draft::Lease(draft) => self.encode_named(draft, key),
            Draft::Session(draft) => self.encode_session(draft, key),
        }
    }

    /// The bytes of a session, this instance's own or the end of another's, kept under `key`.
    #[must_use]
    pub fn encode_session(&self, draft: &SessionDraft, key: &ObjectKey) -> Bytes {
        let SessionDraft { lease, life, state } = draft;
        debug_assert_eq!(lease.held, state.is_renewed(), "a session that is {state:?}");
        let holder = state.is_renewed().then(|| self.instance.clone());
        let lease_record = self.record(lease, holder);
        let record = SessionRecord {
            lease: lease_record,
            object_key: key.clone(),
            life: *life,
            state: *state,
        };
        self.sealed(record, lease.sign)
    }

    /// The bytes of a named lease, kept under `key`.
    #[must_use]
    pub fn encode_named(&self, draft: &NamedDraft, key: &ObjectKey) -> Bytes {
        let NamedDraft { lease, session, life, held_back } = draft;
        let record = NamedLeaseRecord {
            lease: self.record(lease, lease.held.then(|| session.clone())),
            object_key: key.clone(),
            session: session.clone(),
            life: *life,
            held_back: *held_back,
        };
        self.sealed(record, lease.sign)
    }

    fn sealed(&self, mut record: impl Record, sign: bool) -> Bytes {
        self.auth.seal(&mut record, sign);
        record.encode()
    }

    /// What a read of an object of a session means to the machine.
    #[must_use]
    pub fn judge_object(&self, result: Result<Read, StoreError>, object: &Object) -> Judged<Reply> {
        let key = self.object_key(object);
        match object {
            Object::Lease(_) => self.judge_named(result, &key),
            Object::Session(_) => self.judge_session(result, &key),
        }
    }

    /// What a read of a session means to the machine. What is no record has a verdict like any other.
    #[must_use]
    pub fn judge_session(
        &self,
        result: Result<Read, StoreError>,
        key: &ObjectKey,
    ) -> Judged<Reply> {
        let facts = |record| {
            let SessionRecord { lease, life, state, .. } = record;
            SessionFacts { lease: lease.into(), life, state }
        };
        self.judged(result, key, facts, Reply::Session)
    }

    /// What a read of a named lease means to the machine. What is no record has a verdict like any
    /// other.
    #[must_use]
    pub fn judge_named(&self, result: Result<Read, StoreError>, key: &ObjectKey) -> Judged<Reply> {
        let facts = |record| {
            let NamedLeaseRecord { lease, session, life, held_back, .. } = record;
            NamedFacts { lease: lease.into(), session, life, held_back }
        };
        self.judged(result, key, facts, Reply::Lease)
    }

    fn judged<R: KeyedRecord, F>(
        &self,
        result: Result<Read, StoreError>,
        key: &ObjectKey,
        facts: impl FnOnce(R) -> F,
        reply: impl FnOnce(Sighting<F>) -> Reply,
    ) -> Judged<Reply> {
        let (sighting, foreign_key) = match result {
            Ok(Read::Found { content, version, age }) => {
                let judgement = self.auth.judge_at::<R>(&content, key);
                let Judgement { verdict, record, foreign_key, .. } = judgement;
                let facts = record.map(|record| Arc::new(facts(record)));
                (Sighting::Found { version, verdict, facts, age }, foreign_key)
            }
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
        Judged { reply: reply(sighting), foreign_key }
    }
}
