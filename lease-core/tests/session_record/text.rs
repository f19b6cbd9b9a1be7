//! What reads, what does not, and that nothing panics.

use crate::given::{STATES, any_named, any_session, epoch, id, lease, named, session};
use lease_core::{
    ObjectKey,
    key::{ClusterName, InstanceId},
    record::{KeyedRecord, Label, LeaseRecord, Nonce, Record, SnapshotMark, Ttl, Unreadable},
    session::{
        Life, SessionState,
        record::{NamedLeaseRecord, SessionRecord},
    },
    store::MAX_OBJECT_BYTES,
};
use proptest::prelude::*;
use std::{fmt::Debug, time::Duration};

const SESSION: &[u8] = include_bytes!("../golden/session-v1.json");
const NAMED: &[u8] = include_bytes!("../golden/named-lease-v1.json");

/// The text of a record with one field's value replaced.
fn with(text: &[u8], field: &str, value: &str) -> Vec<u8> {
    let text = std::str::from_utf8(text).unwrap();
    let start = text.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
    let end = start + text[start..].find([',', '}']).unwrap();
    format!("{}{value}{}", &text[..start], &text[end..]).into()
}

fn field<R: Record + Debug>(content: &[u8]) -> &'static str {
    match R::decode(content).unwrap_err() {
        Unreadable::Field { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

fn golden_lease(holder: InstanceId, mac: &str) -> LeaseRecord {
    LeaseRecord {
        holder: Some(holder),
        holder_name: Label::new("orders-0").unwrap(),
        seq: 4211,
        nonce: Some(nonce(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)),
        renewed_at: Label::new("2026-10-12T10:00:00.123Z").unwrap(),
        ttl: Ttl::new(Duration::from_secs(30)).unwrap(),
        key_id: Some(Label::new("9dc2cfbbe2bfcfcb688a696542c8639e").unwrap()),
        last_snapshot: Some(SnapshotMark {
            epoch: epoch(7),
            at: Label::new("2026-10-12T09:58:41.517Z").unwrap(),
        }),
        mac: Some(Label::new(mac).unwrap()),
        ..lease(None)
    }
}

fn nonce(bits: u128) -> Nonce {
    Nonce::from_bytes(bits.to_be_bytes())
}

#[test]
fn case_39_what_the_first_version_wrote_reads_for_ever() {
    let owner = id("0f1e2d3c4b5a69788796a5b4c3d2e1f0");
    let life = nonce(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100);
    let cluster = ClusterName::new("orders").unwrap();

    let read = SessionRecord::decode(SESSION).unwrap();
    let mac = read.lease.mac.clone().unwrap();
    let expected = SessionRecord {
        lease: golden_lease(owner.clone(), &mac),
        object_key: cluster.session_key(&owner),
        life,
        state: SessionState::Live,
    };
    assert_eq!(read, expected);
    assert_eq!(read.encode(), SESSION, "the text of version 1 changed");

    let read = NamedLeaseRecord::decode(NAMED).unwrap();
    let mac = read.lease.mac.clone().unwrap();
    let expected = NamedLeaseRecord {
        lease: golden_lease(owner.clone(), &mac),
        object_key: ObjectKey::new("orders/leases/shard-7.json").unwrap(),
        session: owner,
        life: Life { epoch: epoch(3), nonce: life },
        held_back: true,
    };
    assert_eq!(read, expected);
    assert_eq!(read.encode(), NAMED, "the text of version 1 changed");
}

#[test]
fn every_field_of_its_own_is_needed_and_of_one_form() {
    for (name, bad) in [
        ("object_key", "\"orders//x\""),
        ("object_key", "7"),
        ("life", "\"ab\""),
        ("life", "null"),
        ("state", "\"Live\""),
        ("state", "\"\""),
    ] {
        assert_eq!(field::<SessionRecord>(&with(SESSION, name, bad)), name, "{bad}");
        let text = String::from_utf8(SESSION.to_vec()).unwrap();
        let without = text.replace(&format!("\"{name}\""), "\"else\"");
        let error = SessionRecord::decode(without.as_bytes()).unwrap_err();
        assert_eq!(error, Unreadable::Missing { field: name });
    }
    for (name, bad) in [
        ("object_key", "\"A\""),
        ("session", "\"\""),
        ("session", "\"a b\""),
        ("session_epoch", "0"),
        ("session_epoch", "18446744073709551616"),
        ("session_life", "\"\""),
    ] {
        assert_eq!(field::<NamedLeaseRecord>(&with(NAMED, name, bad)), name, "{bad}");
        let text = String::from_utf8(NAMED.to_vec()).unwrap();
        let without = text.replace(&format!("\"{name}\""), "\"else\"");
        let error = NamedLeaseRecord::decode(without.as_bytes()).unwrap_err();
        assert_eq!(error, Unreadable::Missing { field: name });
    }
    for bad in ["false", "1", "\"true\"", "null", "[]"] {
        assert_eq!(field::<NamedLeaseRecord>(&with(NAMED, "held_back", bad)), "held_back");
    }
}

#[test]
fn the_fields_of_a_lease_are_as_strict_as_in_a_lease() {
    for (name, bad) in [("epoch", "0"), ("ttl_seconds", "1e3"), ("seq", "-1"), ("nonce", "\"\"")] {
        assert_eq!(field::<SessionRecord>(&with(SESSION, name, bad)), name);
        assert_eq!(field::<NamedLeaseRecord>(&with(NAMED, name, bad)), name);
    }
}

#[test]
fn a_record_that_contradicts_itself_is_unreadable() {
    for state in STATES {
        let good = session(state);
        assert_eq!(SessionRecord::decode(&good.encode()), Ok(good.clone()));
        let mut wrong = good.clone();
        wrong.lease.holder = (!state.is_renewed()).then(|| id("s-1"));
        assert_eq!(field::<SessionRecord>(&wrong.encode()), "holder", "{state:?}");
        wrong.lease.holder = Some(id("s-10"));
        assert_eq!(field::<SessionRecord>(&wrong.encode()), "holder", "{state:?}");
    }
    let mut wrong = named("a");
    wrong.session = id("S-1");
    assert_eq!(field::<NamedLeaseRecord>(&wrong.encode()), "holder");
    wrong.lease.holder = None;
    assert_eq!(NamedLeaseRecord::decode(&wrong.encode()), Ok(wrong));
}

#[test]
fn case_36_anything_that_two_readers_could_read_differently_is_unreadable() {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let more =
        |bytes: &[u8], fields: &str| format!("{},{fields}}}", &text(bytes)[..bytes.len() - 1]);
    for bad in [
        more(SESSION, r#""state":"live""#),
        more(SESSION, r#""st\u0061te":"killed""#),
        more(SESSION, r#""x":{"y":1,"y":2}"#),
        format!("[{}]", text(SESSION)),
        format!("{}\0", text(SESSION)),
        text(NAMED),
    ] {
        assert!(SessionRecord::decode(bad.as_bytes()).is_err(), "{bad}");
    }
    for bad in [
        more(NAMED, r#""session_epoch":3"#),
        more(NAMED, r#""held_back":true"#),
        format!("[{}]", text(NAMED)),
        format!("{0}{0}", text(NAMED)),
        text(SESSION),
    ] {
        assert!(NamedLeaseRecord::decode(bad.as_bytes()).is_err(), "{bad}");
    }
    let unknown = more(NAMED, r#""later":[1,{"a":null}]"#);
    assert_eq!(NamedLeaseRecord::decode(unknown.as_bytes()), NamedLeaseRecord::decode(NAMED));
    let padded = |length: usize| [NAMED, &vec![b' '; length - NAMED.len()]].concat();
    assert!(NamedLeaseRecord::decode(&padded(MAX_OBJECT_BYTES)).is_ok());
    assert!(NamedLeaseRecord::decode(&padded(MAX_OBJECT_BYTES + 1)).is_err());
}

fn reads_back<R: KeyedRecord + PartialEq + Debug>(record: &R) {
    let text = record.encode();
    assert!(text.len() < 4096, "a record of {} bytes", text.len());
    // Another reader agrees that it is JSON, and where it is kept.
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["object_key"].as_str(), Some(record.object_key().as_str()));
    assert_eq!(R::decode(&text).as_ref(), Ok(record));
}

proptest! {
    #[test]
    fn every_session_reads_back_as_itself(record in any_session()) {
        reads_back(&record);
    }

    #[test]
    fn every_named_lease_reads_back_as_itself(record in any_named()) {
        reads_back(&record);
    }

    #[test]
    fn no_damaged_record_panics_or_reads_as_one_that_is_written_differently(
        of_session in any::<bool>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = if of_session { SESSION.to_vec() } else { NAMED.to_vec() };
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(read) = SessionRecord::decode(&text) {
            prop_assert_eq!(SessionRecord::decode(&read.encode()), Ok(read));
        }
        if let Ok(read) = NamedLeaseRecord::decode(&text) {
            prop_assert_eq!(NamedLeaseRecord::decode(&read.encode()), Ok(read));
        }
    }
}
