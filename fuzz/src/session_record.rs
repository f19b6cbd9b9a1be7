//! Arbitrary bytes where a session or a named lease is kept.

use crate::record::{WIRE, WITH, WITHOUT};
use lease_core::{
    ObjectKey,
    auth::{Judgement, Verdict, canonical_bytes},
    key::InstanceId,
    record::{KeyedRecord, LeaseRecord, Record},
    session::{
        Reply, Sighting,
        record::{NamedLeaseRecord, SessionRecord},
    },
    store::{Read, Version},
};
use std::{fmt::Debug, hash::Hash, sync::LazyLock};

/// Where the golden session and the golden named lease are kept.
static SESSION_KEY: LazyLock<ObjectKey> = LazyLock::new(|| {
    let owner = InstanceId::new("0f1e2d3c4b5a69788796a5b4c3d2e1f0").expect("an id");
    WITH.cluster().session_key(&owner)
});
static LEASE_KEY: LazyLock<ObjectKey> =
    LazyLock::new(|| ObjectKey::new("orders/leases/shard-7.json").expect("a key"));

/// One record, or two of them parted by a byte 255, which no UTF-8 has.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0xff);
    let first = parts.next().map(judged);
    let second = parts.next().map(judged);
    let (Some((session, named)), Some((other_session, other_named))) = (first, second) else {
        return;
    };
    if let (Some(one), Some(other)) = (&session, &other_session) {
        told_apart(one, other, |record| {
            let SessionRecord { lease, object_key, life, state } = record.clone();
            (covered(&lease), object_key, life, state)
        });
    }
    if let (Some(one), Some(other)) = (&named, &other_named) {
        told_apart(one, other, |record| {
            let NamedLeaseRecord { lease, object_key, session, life, held_back } = record.clone();
            (covered(&lease), object_key, session, life, held_back)
        });
    }
}

/// What the MAC covers of every kind.
fn covered(record: &LeaseRecord) -> impl PartialEq + use<> {
    let LeaseRecord { cluster, holder, epoch, ttl, last_snapshot, .. } = record.clone();
    (cluster, holder, epoch, ttl, last_snapshot)
}

fn told_apart<R: Record + Debug, C: PartialEq>(one: &R, other: &R, covered: impl Fn(&R) -> C) {
    assert_eq!(
        covered(one) == covered(other),
        canonical_bytes(one) == canonical_bytes(other),
        "one MAC for two records: {one:?} {other:?}"
    );
}

fn judged(content: &[u8]) -> (Option<SessionRecord>, Option<NamedLeaseRecord>) {
    let session = judged_as::<SessionRecord>(content, &SESSION_KEY);
    let named = judged_as::<NamedLeaseRecord>(content, &LEASE_KEY);
    let plain = WITH.judge(content);
    let authentic = [session.verdict, named.verdict, plain.verdict]
        .into_iter()
        .filter(|verdict| *verdict == Verdict::Authentic);
    assert!(authentic.count() <= 1, "one MAC for two kinds");
    if let (Some(session), Some(named)) = (&session.record, &named.record) {
        assert_ne!(canonical_bytes(session), canonical_bytes(named), "one MAC for two kinds");
    }
    on_the_wire(content, &session, &named);
    (session.record, named.record)
}

fn judged_as<R>(content: &[u8], key: &ObjectKey) -> Judgement<R>
where
    R: KeyedRecord + Clone + Hash + Eq + Debug,
{
    let (with, without) = (WITH.judge_at::<R>(content, key), WITHOUT.judge_at::<R>(content, key));
    assert_eq!(with.record, without.record, "the secret changes what is read");
    assert_ne!(without.verdict, Verdict::Authentic, "there is nothing to check it with");
    assert_eq!(with.verdict == Verdict::Unreadable, with.record.is_none());
    assert_eq!(with.verdict == Verdict::Authentic, with.why.is_none());
    if let Some(record) = &with.record {
        let text = record.encode();
        assert!(text.len() < 4096, "a record of {} bytes", text.len());
        assert_eq!(R::decode(&text).as_ref(), Ok(record), "it reads back as another");
        let value: serde_json::Value = serde_json::from_slice(content).expect("it was read");
        assert_eq!(value["object_key"].as_str(), Some(record.object_key().as_str()));
        sealed(record, with.verdict, key);
    }
    with
}

/// Whatever is sealed is authentic where it says that it is kept, and nowhere else; what is authentic
/// has the MAC that sealing gives.
fn sealed<R: KeyedRecord + Clone + Eq + Debug>(record: &R, verdict: Verdict, key: &ObjectKey) {
    let judge = |content: &[u8], key| WITH.judge_at::<R>(content, key);
    let mut ours = record.clone();
    WITH.seal(&mut ours, true);
    let own = judge(&ours.encode(), record.object_key());
    let is_ours = own.verdict == Verdict::Authentic;
    if verdict == Verdict::Authentic {
        assert!(is_ours && record.object_key() == key);
        let signed = |content: &[u8]| judge(content, key).verdict;
        assert_eq!(signed(&ours.encode()), Verdict::Authentic, "two MACs for one record");
    }
    // What is not ours names another cluster.
    assert!(is_ours || own.verdict == Verdict::Forged);
    let elsewhere = ObjectKey::new("orders/leases/elsewhere.json").expect("a key");
    if *record.object_key() != elsewhere {
        assert_eq!(judge(&ours.encode(), &elsewhere).verdict, Verdict::Forged);
    }
}

fn on_the_wire(
    content: &[u8],
    session: &Judgement<SessionRecord>,
    named: &Judgement<NamedLeaseRecord>,
) {
    let read = || {
        let content = content.to_vec().into();
        Ok(Read::Found { content, version: Version::new("v"), age: None })
    };
    let told = WIRE.judge_session(read(), &SESSION_KEY);
    assert_eq!(told.foreign_key, session.foreign_key);
    let Reply::Session(Sighting::Found { verdict, facts, .. }) = told.reply else {
        panic!("a session is told as {:?}", told.reply)
    };
    let said = session.record.as_ref().map(|record| (record.lease.epoch, record.life, record.state));
    assert_eq!(verdict, session.verdict);
    assert_eq!(facts.map(|facts| (facts.lease.epoch, facts.life, facts.state)), said);

    let told = WIRE.judge_named(read(), &LEASE_KEY);
    assert_eq!(told.foreign_key, named.foreign_key);
    let Reply::Lease(Sighting::Found { verdict, facts, .. }) = told.reply else {
        panic!("a named lease is told as {:?}", told.reply)
    };
    let said = named.record.as_ref().map(|record| (record.lease.holder.clone(), record.life));
    assert_eq!(verdict, named.verdict);
    assert_eq!(facts.map(|facts| (facts.lease.holder.clone(), facts.life)), said);
}
