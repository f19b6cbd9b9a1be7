//! From the machine's words to bytes and back.

use crate::{
    ObjectKey,
    auth::{Authenticator, ClusterSecret, Verdict},
    key::{ClusterName, InstanceId, LeaseName},
    machine,
    record::{Label, Nonce, Ttl},
    session::{
        Draft, Life, NamedDraft, NamedFacts, Object, Reply, SessionDraft, SessionFacts,
        SessionState, Sighting,
    },
    store::{Cause, Read, StoreError, StoreErrorKind, Version},
    wire::Wire,
};
use bytes::Bytes;
use fencing::{Epoch, WallTime};
use std::{sync::Arc, time::Duration};

const STATES: [SessionState; 5] = SessionState::ALL;

fn id(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

fn cluster() -> ClusterName {
    ClusterName::new("orders").unwrap()
}

fn lease_key(name: &str) -> ObjectKey {
    cluster().named_lease_key(&LeaseName::new(name).unwrap())
}

fn wire(instance: &str) -> Wire {
    let secret = ClusterSecret::new(b"0123456789abcdef0123456789abcdef").unwrap();
    Wire {
        auth: Authenticator::new(cluster(), Some(&secret)),
        instance: id(instance),
        name: Label::default(),
        ttl: Ttl::new(Duration::from_secs(30)).unwrap(),
    }
}

fn draft(held: bool) -> machine::Draft {
    machine::Draft {
        held,
        epoch: epoch(7),
        seq: 3,
        nonce: Nonce::from_bytes([9; 16]),
        renewed_at: WallTime::default(),
        sign: true,
        last_snapshot: None,
    }
}

fn found(content: Bytes) -> Result<Read, StoreError> {
    Ok(Read::Found { content, version: Version::new("v"), age: Some(Duration::from_secs(2)) })
}

fn session(wire: &Wire, content: Bytes, of: &str) -> (Verdict, Option<Arc<SessionFacts>>) {
    match wire.judge_object(found(content), &Object::Session(id(of))).reply {
        Reply::Session(Sighting::Found { verdict, facts, .. }) => (verdict, facts),
        other => panic!("{other:?}"),
    }
}

fn lease(wire: &Wire, content: Bytes, name: &str) -> (Verdict, Option<Arc<NamedFacts>>) {
    match wire.judge_object(found(content), &Object::Lease(lease_key(name))).reply {
        Reply::Lease(Sighting::Found { verdict, facts, .. }) => (verdict, facts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_told_as_it_was_written() {
    let (own, other) = (wire("s-1"), wire("s-2"));
    for state in STATES {
        // Whoever is alive writes itself; whoever is dead was written so by another.
        let writer = if state.is_renewed() { &own } else { &other };
        let written = SessionDraft {
            lease: draft(state.is_renewed()),
            life: Nonce::from_bytes([1; 16]),
            state,
        };
        let key = own.object_key(&Object::Session(id("s-1")));
        let content = writer.encode_object(&Draft::Session(written), &key);
        let (verdict, facts) = session(&other, content.clone(), "s-1");
        let facts = facts.unwrap();
        assert_eq!(verdict, Verdict::Authentic);
        assert_eq!((facts.state, facts.life), (state, Nonce::from_bytes([1; 16])));
        assert_eq!(facts.lease.epoch, epoch(7));
        assert_eq!(facts.lease.nonce, Some(Nonce::from_bytes([9; 16])));
        assert_eq!(facts.lease.holder, state.is_renewed().then(|| id("s-1")));
        assert_eq!(session(&other, content.clone(), "s-2").0, Verdict::Forged);
        assert_eq!(lease(&other, content, "a").0, Verdict::Unreadable);
    }
}

#[test]
fn a_named_lease_is_told_as_it_was_written() {
    let wire = wire("s-1");
    for (held, held_back) in [(true, false), (true, true), (false, false), (false, true)] {
        let life = Life { epoch: epoch(3), nonce: Nonce::from_bytes([1; 16]) };
        let written = NamedDraft { lease: draft(held), session: id("s-1"), life, held_back };
        let content = wire.encode_object(&Draft::Lease(written), &lease_key("a"));
        let (verdict, facts) = lease(&wire, content.clone(), "a");
        let facts = facts.unwrap();
        assert_eq!(verdict, Verdict::Authentic);
        assert_eq!((&facts.session, facts.life, facts.held_back), (&id("s-1"), life, held_back));
        assert_eq!(facts.lease.holder, held.then(|| id("s-1")));
        assert_eq!(facts.lease.ttl, Duration::from_secs(30));
        assert_eq!(lease(&wire, content.clone(), "b").0, Verdict::Forged);
        assert_eq!(session(&wire, content, "s-1").0, Verdict::Unreadable);
    }
}

#[test]
fn an_unsigned_draft_is_unsigned() {
    let wire = wire("s-1");
    let mut unsigned = draft(true);
    unsigned.sign = false;
    let written = SessionDraft {
        lease: unsigned,
        life: Nonce::from_bytes([1; 16]),
        state: SessionState::Live,
    };
    let key = wire.object_key(&Object::Session(id("s-1")));
    let content = wire.encode_session(&written, &key);
    assert_eq!(session(&wire, content, "s-1").0, Verdict::Unsigned);
}

#[test]
fn whatever_else_a_read_says_is_told() {
    let wire = wire("s-1");
    let objects = [Object::Session(id("s-2")), Object::Lease(lease_key("a"))];
    for object in &objects {
        let judge = |read| wire.judge_object(read, object).reply;
        let missing = match object {
            Object::Session(_) => Reply::Session(Sighting::Missing),
            _ => Reply::Lease(Sighting::Missing),
        };
        assert_eq!(judge(Ok(Read::Missing)), missing);
        let same = match object {
            Object::Session(_) => Reply::Session(Sighting::NotModified),
            _ => Reply::Lease(Sighting::NotModified),
        };
        assert_eq!(judge(Ok(Read::NotModified)), same);
        let error = StoreError::Unavailable(Cause::new("refused"));
        assert_eq!(judge(Err(error)), Reply::Failed(StoreErrorKind::Unavailable));
    }
    assert_eq!(session(&wire, "junk".into(), "s-1"), (Verdict::Unreadable, None));
}
