//! Arbitrary bytes where the lease record is kept.

use lease_core::{
    auth::{Authenticator, ClusterSecret, Judgement, Verdict, canonical_bytes},
    key::{ClusterName, InstanceId},
    machine::{Reply, Sighting},
    record::{Label, LeaseRecord, Ttl},
    store::{Read, Version},
    wire::Wire,
};
use std::sync::LazyLock;

/// The secret of the golden vectors, so that what they signed is authentic here.
const SECRET_HEX: &str = "551fde2fa1e9e759608ba48de7e14df7397a762c2a88c4ce00e3a08fa8662453";

pub(crate) static WITHOUT: LazyLock<Authenticator> = LazyLock::new(|| Authenticator::new(cluster(), None));
pub(crate) static WITH: LazyLock<Authenticator> = LazyLock::new(|| {
    let byte = |at: usize| u8::from_str_radix(&SECRET_HEX[at..at + 2], 16).expect("digits");
    let secret: Vec<u8> = (0..SECRET_HEX.len()).step_by(2).map(byte).collect();
    Authenticator::new(cluster(), Some(&ClusterSecret::new(&secret).expect("32 bytes")))
});
pub(crate) static WIRE: LazyLock<Wire> = LazyLock::new(|| Wire {
    auth: WITH.clone(),
    instance: InstanceId::new("s-1").expect("an id"),
    name: Label::default(),
    ttl: Ttl::MAX,
});

fn cluster() -> ClusterName {
    ClusterName::new("orders").expect("a name")
}

/// One record, or two of them parted by a byte 255, which no UTF-8 has.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0xff);
    let first = parts.next().and_then(judged);
    let second = parts.next().and_then(judged);
    if let (Some(first), Some(second)) = (first, second) {
        assert_eq!(
            covered(&first) == covered(&second),
            canonical_bytes(&first) == canonical_bytes(&second),
            "one MAC for two records: {first:?} {second:?}"
        );
    }
}

/// What the MAC covers.
fn covered(record: &LeaseRecord) -> impl PartialEq {
    let LeaseRecord { cluster, holder, epoch, ttl, last_snapshot, .. } = record.clone();
    (cluster, holder, epoch, ttl, last_snapshot)
}

fn judged(content: &[u8]) -> Option<LeaseRecord> {
    let (with, without) = (WITH.judge(content), WITHOUT.judge(content));
    for judgement in [&with, &without] {
        coherent(content, judgement);
    }
    assert_eq!(with.record, without.record, "the secret changes what is read");
    assert_ne!(without.verdict, Verdict::Authentic, "there is nothing to check it with");
    assert!(!without.foreign_key, "there is no other key");
    on_the_wire(content, &with);

    let record = with.record?;
    let text = record.encode();
    assert!(text.len() < 4096, "a record of {} bytes", text.len());
    assert_eq!(LeaseRecord::decode(&text).as_ref(), Ok(&record), "it reads back as another");
    // Another reader takes it for JSON too, and for the same epoch.
    let value: serde_json::Value = serde_json::from_slice(content).expect("it was read");
    assert_eq!(value["epoch"].as_u64(), Some(record.epoch.as_u64()));
    sealed(&record, with.verdict);
    Some(record)
}

fn coherent(content: &[u8], judgement: &Judgement) {
    let Judgement { verdict, record, why, .. } = judgement;
    assert_eq!(*verdict == Verdict::Unreadable, record.is_none());
    assert_eq!(*verdict == Verdict::Authentic, why.is_none());
    assert_eq!(LeaseRecord::decode(content).ok(), *record);
}

fn on_the_wire(content: &[u8], with: &Judgement) {
    let read =
        Read::Found { content: content.to_vec().into(), version: Version::new("v"), age: None };
    let told = WIRE.judge(Ok(read));
    assert_eq!(told.foreign_key, with.foreign_key);
    let Reply::Read(Sighting::Found { verdict, facts, .. }) = told.reply else {
        panic!("what was found is told as {:?}", told.reply)
    };
    assert_eq!(verdict, with.verdict);
    let epoch = |record: &LeaseRecord| (record.holder.clone(), record.epoch, record.nonce);
    let told = facts.map(|facts| (facts.holder.clone(), facts.epoch, facts.nonce));
    assert_eq!(told, with.record.as_ref().map(epoch));
}

/// What is authentic has the MAC that sealing gives; whatever is sealed is authentic, and no longer
/// so once a field that is covered changes.
fn sealed(record: &LeaseRecord, verdict: Verdict) {
    let mut ours = record.clone();
    WITH.seal(&mut ours, true);
    if verdict == Verdict::Authentic {
        assert_eq!(ours.mac, record.mac, "two MACs for one record");
    }
    if record.cluster != *WITH.cluster() {
        assert_eq!((verdict, &ours.mac), (Verdict::Forged, &None), "another cluster's");
        return;
    }
    assert_eq!(WITH.judge(&ours.encode()).verdict, Verdict::Authentic);
    let edited =
        LeaseRecord { holder: record.holder.is_none().then(|| WIRE.instance.clone()), ..ours };
    assert_eq!(WITH.judge(&edited.encode()).verdict, Verdict::Forged);
}
