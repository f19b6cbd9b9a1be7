//! The record's text: what reads, what does not, and that nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

use fencing::Epoch;
use lease_core::{
    key::{ClusterName, InstanceId},
    record::{Label, LeaseRecord, Nonce, SnapshotMark, Ttl, Unreadable},
    store::MAX_OBJECT_BYTES,
};
use proptest::prelude::*;
use std::time::Duration;

/// The fields that every record has.
const LEAST: &str = r#"{"cluster":"orders","holder":"s-1","epoch":7,"seq":1,"ttl_seconds":30}"#;
/// As the reference writes it (its ids abbreviated there).
const REFERENCE: &str = r#"{"cluster":"prod","holder":"a1b2","holder_name":"rescue-0","epoch":7,"seq":4211,
 "renewed_at":"2026-10-12T10:00:00Z","ttl_seconds":30,"key_id":"9f",
 "last_snapshot_epoch":7,"last_snapshot_at":"2026-10-12T09:58:41.517Z","mac":"3c"}"#;

fn decode(text: impl AsRef<[u8]>) -> Result<LeaseRecord, Unreadable> {
    LeaseRecord::decode(text.as_ref())
}

/// [`LEAST`] with one field's value replaced.
fn with(field: &str, value: &str) -> String {
    let start = LEAST.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
    let end = start + LEAST[start..].find([',', '}']).unwrap();
    format!("{}{value}{}", &LEAST[..start], &LEAST[end..])
}

/// [`LEAST`] with more fields.
fn and(fields: &str) -> String {
    format!("{},{fields}}}", &LEAST[..LEAST.len() - 1])
}

fn field(result: Result<LeaseRecord, Unreadable>) -> &'static str {
    match result.unwrap_err() {
        Unreadable::Field { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_record_reads() {
    let record = decode(LEAST).unwrap();
    assert_eq!(record.holder, Some(InstanceId::new("s-1").unwrap()));
    assert_eq!(record.ttl.duration(), Duration::from_secs(30));
    assert_eq!((record.nonce, record.key_id, record.mac), (None, None, None));
    assert!(record.last_snapshot.is_none() && record.holder_name.is_empty());
    assert!(decode(with("holder", "\"\"")).unwrap().is_released());
}

#[test]
fn the_references_record_reads() {
    let record = decode(REFERENCE).unwrap();
    assert_eq!(record.seq, 4211);
    assert_eq!(record.last_snapshot.unwrap().at.as_str(), "2026-10-12T09:58:41.517Z");
}

#[test]
fn every_field_that_is_needed_is_needed() {
    for name in ["cluster", "holder", "epoch", "seq", "ttl_seconds"] {
        let text = LEAST.replace(&format!("\"{name}\""), "\"else\"");
        assert_eq!(decode(text), Err(Unreadable::Missing { field: name }));
    }
}

#[test]
fn case_28_odd_ttls_are_unreadable() {
    for odd in [
        "0",
        "-1",
        "18446744073709551615",
        "0.0001",
        "30.0000",
        "3e1",
        "\"30\"",
        "null",
        "86400.001",
    ] {
        assert_eq!(field(decode(with("ttl_seconds", odd))), "ttl_seconds", "{odd}");
    }
    let record = decode(with("ttl_seconds", "0.05")).unwrap();
    assert_eq!(record.ttl.duration(), Duration::from_millis(50));
}

#[test]
fn case_31_a_name_is_a_label_and_ids_compare_whole() {
    let ours = decode(and(r#""holder_name":"host""#)).unwrap();
    let theirs = decode(and(r#""holder_name":"host""#).replace("s-1", "s-10")).unwrap();
    assert_eq!(ours.holder_name, theirs.holder_name);
    assert_ne!(ours.holder, theirs.holder);
    assert_ne!(ours.holder, decode(LEAST.replace("s-1", "S-1")).unwrap().holder);
}

#[test]
fn case_33_integers_are_exact_and_nothing_else_is_one() {
    for exact in ["9007199254740993", "18446744073709551615", "1"] {
        let record = decode(with("epoch", exact)).unwrap();
        assert_eq!(record.epoch.to_string(), exact);
        let text = String::from_utf8(record.encode().to_vec()).unwrap();
        assert!(text.contains(&format!("\"epoch\":{exact},")), "{text}");
        assert_eq!(decode(&text).unwrap().epoch, record.epoch);
        assert_eq!(decode(with("seq", exact)).unwrap().seq.to_string(), exact);
    }
    let no_integers = [
        "18446744073709551616",
        "7.0",
        "1e3",
        "-1",
        "-0",
        "\"7\"",
        "true",
        "null",
        "[7]",
        "{}",
        "99999999999999999999999999999999999999999999",
        "7e0",
    ];
    for bad in no_integers {
        assert_eq!(field(decode(with("epoch", bad))), "epoch", "{bad}");
        assert_eq!(field(decode(with("seq", bad))), "seq", "{bad}");
    }
    assert_eq!(field(decode(with("epoch", "0"))), "epoch");
    assert!(decode(with("seq", "0")).is_ok());
    for no_json in ["07", "+7", "0x7", "7.", "NaN", "", "７"] {
        assert!(
            matches!(decode(with("epoch", no_json)), Err(Unreadable::Syntax { .. })),
            "{no_json}"
        );
    }
    assert!(Epoch::MAX.next().is_err());
}

#[test]
fn case_36_anything_that_two_readers_could_read_differently_is_unreadable() {
    let array = r#"["orders","s-1","",7,1,"","",30]"#;
    let utf16: Vec<u8> = LEAST.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bad: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        vec![0; 4096],
        b"{}".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        array.into(),
        format!("[{LEAST}]").into(),
        format!("\u{feff}{LEAST}").into(),
        format!("{LEAST}x").into(),
        format!("{LEAST}\0").into(),
        format!("{LEAST}{LEAST}").into(),
        format!("{LEAST}\n{LEAST}").into(),
        and(r#""epoch":7"#).into(),
        and(r#""\u0065poch":7"#).into(),
        and(r#""x":1,"x":1"#).into(),
        and(r#""x":1,"\u0078":2"#).into(),
        and(r#""x":{"epoch":1,"epoch":2}"#).into(),
        utf16,
        [LEAST.as_bytes(), b"\xff"].concat(),
        LEAST.replace("s-1", "s-\u{1}").into(),
        [b"{\"x\":\"\xff\",", &LEAST.as_bytes()[1..]].concat(),
        [b"{\"x\":\"\xed\xa0\x80\",", &LEAST.as_bytes()[1..]].concat(),
        and(r#""x":"\ud800""#).into(),
        "[".repeat(10_000).into(),
        "{\"a\":".repeat(10_000).into(),
        and(&format!("\"x\":{}{}", "[".repeat(10_000), "]".repeat(10_000))).into(),
        LEAST.replace("\"seq\"", "seq").into(),
        LEAST.replace(":7", ":7,").into(),
        LEAST.replace('"', "'").into(),
        format!("// a comment\n{LEAST}").into(),
        LEAST[..LEAST.len() - 1].into(),
    ];
    for content in bad {
        let start = String::from_utf8_lossy(&content[..content.len().min(80)]).into_owned();
        assert!(decode(content).is_err(), "{start:?} was taken for a record");
    }
    assert!(decode(format!(" \r\n\t{LEAST}\n ")).is_ok(), "white space around it is JSON");
    assert!(
        decode(LEAST.replace("epoch", r"\u0065poch")).is_ok(),
        "an escape is one spelling of a key"
    );
}

#[test]
fn case_36_wrong_types_and_over_long_texts_are_unreadable() {
    let optional = ["holder_name", "nonce", "renewed_at", "key_id", "last_snapshot_at", "mac"];
    let long = format!("\"{}\"", "x".repeat(129));
    for name in optional {
        for value in ["null", "1", "true", "[]", "{}", &long, r#""a\nb""#, r#""\u0000""#] {
            assert_eq!(field(decode(and(&format!("\"{name}\":{value}")))), name, "{value}");
        }
    }
    for value in ["\"\"", "\"Orders\"", "\"a/b\"", "null", "7", "\"a\\u0000\""] {
        assert_eq!(field(decode(with("cluster", value))), "cluster", "{value}");
    }
    for value in ["\"s 1\"", "null", "7", "\" \"", &format!("\"{}\"", "x".repeat(65))] {
        assert_eq!(field(decode(with("holder", value))), "holder", "{value}");
    }
    for nonce in
        ["\"\"", "\"00\"", &format!("\"{}\"", "A".repeat(32)), &format!("\"{}\"", "a".repeat(33))]
    {
        assert_eq!(field(decode(and(&format!("\"nonce\":{nonce}")))), "nonce", "{nonce}");
    }
}

#[test]
fn half_a_snapshot_mark_is_unreadable() {
    assert_eq!(
        decode(and(r#""last_snapshot_epoch":7"#)),
        Err(Unreadable::Missing { field: "last_snapshot_at" })
    );
    assert_eq!(
        decode(and(r#""last_snapshot_at":"""#)),
        Err(Unreadable::Missing { field: "last_snapshot_epoch" })
    );
    assert_eq!(
        field(decode(and(r#""last_snapshot_epoch":0,"last_snapshot_at":"""#))),
        "last_snapshot_epoch"
    );
    assert!(decode(and(r#""last_snapshot_epoch":7,"last_snapshot_at":"""#)).is_ok());
}

#[test]
fn case_37_sixty_four_kib_are_read_and_not_a_byte_more() {
    let padded = |length: usize| format!("{LEAST}{}", " ".repeat(length - LEAST.len()));
    assert_eq!(decode(padded(MAX_OBJECT_BYTES)), decode(LEAST));
    assert_eq!(
        decode(padded(MAX_OBJECT_BYTES + 1)),
        Err(Unreadable::TooLarge { bytes_max: MAX_OBJECT_BYTES })
    );
    assert_eq!(
        decode(vec![b'['; MAX_OBJECT_BYTES + 1]),
        Err(Unreadable::TooLarge { bytes_max: MAX_OBJECT_BYTES })
    );
    // Filled with what a reader must look at, not skip.
    let filler = format!("\"x\":\"{}\"", "y".repeat(MAX_OBJECT_BYTES - LEAST.len() - 7));
    assert_eq!(and(&filler).len(), MAX_OBJECT_BYTES);
    assert_eq!(decode(and(&filler)), decode(LEAST));
}

#[test]
fn case_39_unknown_fields_are_ignored() {
    let more = and(r#""life":"x","state":{"a":[1,2.5e3,{"a":null}]},"Epoch":9,"epoch ":1,"":0"#);
    assert_eq!(decode(more), decode(LEAST));
}

#[test]
fn case_39_what_the_first_version_wrote_reads_for_ever() {
    let golden = include_bytes!("golden/lease-v1.json");
    let record = decode(golden).unwrap();
    assert_eq!(
        record,
        LeaseRecord {
            cluster: ClusterName::new("orders").unwrap(),
            holder: Some(InstanceId::new("0f1e2d3c4b5a69788796a5b4c3d2e1f0").unwrap()),
            holder_name: Label::new("orders-0").unwrap(),
            epoch: Epoch::new(7).unwrap(),
            seq: 4211,
            nonce: Some(Nonce::from_bytes(
                0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes()
            )),
            renewed_at: Label::new("2026-10-12T10:00:00.123Z").unwrap(),
            ttl: Ttl::new(Duration::from_secs(30)).unwrap(),
            key_id: Some(Label::new("9dc2cfbbe2bfcfcb688a696542c8639e").unwrap()),
            last_snapshot: Some(SnapshotMark {
                epoch: Epoch::new(7).unwrap(),
                at: Label::new("2026-10-12T09:58:41.517Z").unwrap(),
            }),
            mac: Some(
                Label::new("b3ab230e3aec612bf0d7adb249f2259c320ee629e68fc85f67291e69fca7a5fc")
                    .unwrap()
            ),
        }
    );
    assert_eq!(record.encode(), golden.as_slice(), "the text of version 1 changed");
}

#[test]
fn an_error_repeats_nothing_of_the_content() {
    for text in [
        "hunter2",
        "{\"hunter2\":1,\"hunter2\":1}",
        &and("\"mac\":{\"hunter2\":1}"),
        &with("holder", "\"hunter2!\""),
    ] {
        let error = decode(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

fn label() -> impl Strategy<Value = Label> {
    "\\PC{0,32}|[\"\\\\/ a\u{2028}]{0,40}"
        .prop_filter_map("too long", |text| Label::new(&text).ok())
}

fn mark() -> impl Strategy<Value = SnapshotMark> {
    (1..=u64::MAX, label())
        .prop_map(|(epoch, at)| SnapshotMark { epoch: Epoch::new(epoch).unwrap(), at })
}

prop_compose! {
    fn any_record()(
        cluster in "[a-z0-9][a-z0-9_-]{0,63}",
        holder in prop::option::of("[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}"),
        epoch in 1..=u64::MAX,
        seq in any::<u64>(),
        nonce in any::<Option<[u8; 16]>>(),
        ttl in 1..=86_400_000_u64,
        last_snapshot in prop::option::of(mark()),
        [holder_name, renewed_at] in [label(), label()],
        [key_id, mac] in [prop::option::of(label()), prop::option::of(label())],
    ) -> LeaseRecord {
        LeaseRecord {
            cluster: ClusterName::new(&cluster).unwrap(),
            holder: holder.map(|id| InstanceId::new(&id).unwrap()),
            epoch: Epoch::new(epoch).unwrap(),
            nonce: nonce.map(Nonce::from_bytes),
            ttl: Ttl::new(Duration::from_millis(ttl)).unwrap(),
            holder_name, seq, renewed_at, key_id, last_snapshot, mac,
        }
    }
}

proptest! {
    #[test]
    fn every_record_reads_back_as_itself(record in any_record()) {
        let text = record.encode();
        prop_assert!(text.len() < 4096);
        // Another reader agrees that it is JSON, of as many fields.
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(value["epoch"].as_u64(), Some(record.epoch.as_u64()));
        prop_assert_eq!(LeaseRecord::decode(&text), Ok(record));
    }

    #[test]
    fn no_input_panics(content in prop::collection::vec(any::<u8>(), 0..2048)) {
        let _ = decode(content);
    }

    #[test]
    fn no_text_like_json_panics(text in r#"[\[\]{},:"\\a0u.e+ \-]{0,400}"#) {
        let _ = decode(&text);
        let _ = decode(and(&format!("\"x\":{text}")));
    }

    #[test]
    fn no_damaged_record_panics_or_reads_as_one_that_is_written_differently(
        record in any_record(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = record.encode().to_vec();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(read) = decode(&text) {
            prop_assert_eq!(decode(read.encode()), Ok(read));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_large_input_panics(
        unit in prop::collection::vec(any::<u8>(), 1..64),
        length in 0..=MAX_OBJECT_BYTES + 1,
    ) {
        let content: Vec<u8> = unit.into_iter().cycle().take(length).collect();
        let _ = decode(content);
    }
}
