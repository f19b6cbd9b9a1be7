//! What a MAC is worth: nothing that it covers can change, nothing else passes for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

use fencing::Epoch;
use lease_core::{
    auth::{Authenticator, ClusterSecret, Objection, Verdict, acceptable, canonical_bytes},
    key::{ClusterName, InstanceId},
    record::{Label, LeaseRecord, SnapshotMark, Ttl},
};
use proptest::prelude::*;
use std::time::Duration;

fn name(text: &str) -> ClusterName {
    ClusterName::new(text).unwrap()
}

fn secret(byte: u8) -> ClusterSecret {
    let mut secret = *b"0123456789abcdef0123456789abcdef";
    secret[0] = byte;
    ClusterSecret::new(&secret).unwrap()
}

fn authenticator(cluster: &str) -> Authenticator {
    Authenticator::new(name(cluster), Some(&secret(0)))
}

fn record(cluster: &str, holder: &str, epoch: u64, seq: u64) -> LeaseRecord {
    LeaseRecord {
        cluster: name(cluster),
        holder: (!holder.is_empty()).then(|| InstanceId::new(holder).unwrap()),
        holder_name: Label::default(),
        epoch: Epoch::new(epoch).unwrap(),
        seq,
        nonce: None,
        renewed_at: Label::default(),
        ttl: Ttl::new(Duration::from_secs(30)).unwrap(),
        key_id: None,
        last_snapshot: None,
        mac: None,
    }
}

fn sealed(mut record: LeaseRecord) -> LeaseRecord {
    authenticator(record.cluster.as_str()).seal(&mut record, true);
    record
}

fn mark(epoch: u64, at: &str) -> Option<SnapshotMark> {
    Some(SnapshotMark { epoch: Epoch::new(epoch).unwrap(), at: Label::new(at).unwrap() })
}

fn verdict(record: &LeaseRecord) -> Verdict {
    authenticator(record.cluster.as_str()).judge(&record.encode()).verdict
}

#[test]
fn what_is_sealed_is_authentic_and_names_its_key() {
    let record = sealed(record("orders", "s-1", 7, 1));
    assert_eq!(verdict(&record), Verdict::Authentic);
    assert_eq!(record.key_id.as_deref(), authenticator("orders").key_id());
    assert_eq!(record.mac.unwrap().len(), 64);
}

#[test]
fn an_unsigned_seal_names_the_key_and_removes_the_mac() {
    let mut record = sealed(record("orders", "s-1", 7, 1));
    authenticator("orders").seal(&mut record, false);
    assert!(record.mac.is_none() && record.key_id.is_some());
    assert_eq!(verdict(&record), Verdict::Unsigned);

    Authenticator::new(name("orders"), None).seal(&mut record, true);
    assert!(record.mac.is_none() && record.key_id.is_none());
}

#[test]
fn case_35_text_does_not_cross_a_boundary_under_one_mac() {
    let ours = sealed(record("ab", "c", 1, 23));
    for mut other in [record("a", "bc", 1, 23), record("abc", "", 1, 23)] {
        other.mac = ours.mac.clone();
        assert_eq!(verdict(&other), Verdict::Forged);
    }
    // seq is outside, so it lends its digits to nobody.
    let mut shifted = record("ab", "c", 12, 3);
    shifted.mac = ours.mac.clone();
    assert_eq!(verdict(&shifted), Verdict::Forged);
}

#[test]
fn case_35_absent_is_told_from_empty() {
    let absent = record("orders", "s-1", 7, 1);
    let empty = LeaseRecord { last_snapshot: mark(7, ""), ..absent.clone() };
    let released = record("orders", "", 7, 1);
    let macs = [absent, empty, released].map(|record| sealed(record).mac);
    assert_ne!(macs[0], macs[1]);
    assert_ne!(macs[0], macs[2]);
    assert_ne!(macs[1], macs[2]);
}

#[test]
fn every_covered_field_is_covered_and_the_others_are_not() {
    let base =
        sealed(LeaseRecord { last_snapshot: mark(6, "then"), ..record("orders", "s-1", 7, 1) });
    type Change = fn(&mut LeaseRecord);
    let covered: [(&str, Change); 8] = [
        ("epoch", |r| r.epoch = r.epoch.next().unwrap()),
        ("holder", |r| r.holder = Some(InstanceId::new("s-2").unwrap())),
        ("release", |r| r.holder = None),
        ("a shorter ttl", |r| r.ttl = Ttl::new(Duration::from_millis(29_999)).unwrap()),
        ("a longer ttl", |r| r.ttl = Ttl::MAX),
        ("last_snapshot_epoch", |r| r.last_snapshot = mark(5, "then")),
        ("last_snapshot_at", |r| r.last_snapshot = mark(6, "thus")),
        ("no snapshot", |r| r.last_snapshot = None),
    ];
    for (what, change) in covered {
        let mut changed = base.clone();
        change(&mut changed);
        assert_eq!(verdict(&changed), Verdict::Forged, "{what}");
    }
    let uncovered: [(&str, Change); 4] = [
        ("seq", |r| r.seq += 1),
        ("nonce", |r| r.nonce = Some(lease_core::record::Nonce::from_bytes([1; 16]))),
        ("renewed_at", |r| r.renewed_at = Label::new("x").unwrap()),
        ("holder_name", |r| r.holder_name = Label::new("x").unwrap()),
    ];
    for (what, change) in uncovered {
        let mut changed = base.clone();
        change(&mut changed);
        assert_eq!(verdict(&changed), Verdict::Authentic, "{what}");
    }
}

#[test]
fn case_38_only_a_mac_of_the_full_length_in_one_spelling_verifies() {
    let good = sealed(record("orders", "s-1", 7, 1));
    let mac = good.mac.clone().unwrap();
    let odd = [
        String::new(),
        mac[..8].to_owned(),
        mac[..62].to_owned(),
        mac[..63].to_owned(),
        format!("{mac}00"),
        format!("{mac} "),
        format!(" {}", &mac[1..]),
        mac.to_uppercase(),
        format!("0x{}", &mac[2..]),
        "0".repeat(64),
        "z".repeat(64),
        "é".repeat(32),
    ];
    for text in odd {
        let forged = LeaseRecord { mac: Some(Label::new(&text).unwrap()), ..good.clone() };
        assert_eq!(verdict(&forged), Verdict::Forged, "{text}");
    }
    // The key's id is no tag either.
    let own_id = LeaseRecord { mac: good.key_id.clone(), ..good.clone() };
    assert_eq!(verdict(&own_id), Verdict::Forged);
    assert_eq!(verdict(&LeaseRecord { mac: None, ..good }), Verdict::Unsigned);
}

#[test]
fn another_secret_is_told_from_a_forgery() {
    let mut foreign = record("orders", "s-1", 7, 1);
    Authenticator::new(name("orders"), Some(&secret(1))).seal(&mut foreign, true);
    let judgement = authenticator("orders").judge(&foreign.encode());
    assert_eq!(judgement.verdict, Verdict::Forged);
    assert!(judgement.foreign_key);
    assert_eq!(judgement.why, Some(Objection::MacMismatch));

    // Edited, under the right key: forged, but no reason to think the secret wrong.
    let mut edited = sealed(record("orders", "s-1", 7, 1));
    edited.epoch = Epoch::MAX;
    let judgement = authenticator("orders").judge(&edited.encode());
    assert_eq!((judgement.verdict, judgement.foreign_key), (Verdict::Forged, false));

    // The id is outside the MAC: a wrong one on a record that verifies says nothing.
    let mut relabelled = sealed(record("orders", "s-1", 7, 1));
    relabelled.key_id = Some(Label::new("9f").unwrap());
    let judgement = authenticator("orders").judge(&relabelled.encode());
    assert_eq!((judgement.verdict, judgement.foreign_key), (Verdict::Authentic, false));
}

#[test]
fn a_record_of_another_cluster_is_forged_with_and_without_a_secret() {
    let other = sealed(record("orders-2", "s-1", 7, 1));
    for ours in [authenticator("orders"), Authenticator::new(name("orders"), None)] {
        let judgement = ours.judge(&other.encode());
        assert_eq!(judgement.verdict, Verdict::Forged);
        assert_eq!(judgement.why, Some(Objection::OtherCluster));
        assert!(!judgement.foreign_key);
    }
    // And is not signed by mistake.
    let mut other = record("orders-2", "s-1", 7, 1);
    authenticator("orders").seal(&mut other, true);
    assert!(other.mac.is_none());
}

#[test]
fn without_a_secret_a_mac_is_neither_believed_nor_held_against_it() {
    let signed = sealed(record("orders", "s-1", 7, 1));
    let open = Authenticator::new(name("orders"), None);
    let judgement = open.judge(&signed.encode());
    assert_eq!(judgement.verdict, Verdict::Unsigned);
    assert_eq!(judgement.why, Some(Objection::NoSecret));
    assert!(!judgement.foreign_key && !open.authenticates() && open.key_id().is_none());
}

#[test]
fn unreadable_content_has_a_verdict_and_a_reason() {
    let judgement = authenticator("orders").judge(b"{}");
    assert_eq!(judgement.verdict, Verdict::Unreadable);
    assert!(judgement.record.is_none());
    assert!(judgement.why.unwrap().to_string().contains("cluster"));
}

#[test]
fn trust_on_first_use() {
    for (has_secret, seen) in [(false, false), (false, true), (true, false), (true, true)] {
        assert!(acceptable(Verdict::Authentic, has_secret, seen));
        assert_eq!(acceptable(Verdict::Unsigned, has_secret, seen), !(has_secret && seen));
        assert!(!acceptable(Verdict::Forged, has_secret, seen));
        assert!(!acceptable(Verdict::Unreadable, has_secret, seen));
    }
}

#[test]
fn debug_shows_no_key() {
    let shown = format!("{:?}", authenticator("orders"));
    let id = authenticator("orders").key_id().unwrap().to_owned();
    assert_eq!(shown, format!("Authenticator {{ cluster: \"orders\", key_id: Some({id:?}), .. }}"));
}

/// Short texts over few letters, so that equal joins of different parts come up.
fn small() -> impl Strategy<Value = LeaseRecord> {
    let mark = prop::option::of((1..3_u64, "[a1]{0,2}"));
    (
        "[a1]{1,3}",
        "[a1]{0,3}",
        prop::sample::select(vec![1, 2, 11, 1 << 53, u64::MAX]),
        1..3_u64,
        mark,
    )
        .prop_map(|(cluster, holder, epoch, ttl, mark)| LeaseRecord {
            ttl: Ttl::new(Duration::from_millis(ttl)).unwrap(),
            last_snapshot: mark.map(|(epoch, at)| SnapshotMark {
                epoch: Epoch::new(epoch).unwrap(),
                at: Label::new(&at).unwrap(),
            }),
            ..record(&cluster, &holder, epoch, 1)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn different_records_have_different_canonical_bytes(a in small(), b in small()) {
        prop_assert_eq!(a == b, canonical_bytes(&a) == canonical_bytes(&b));
    }
}

proptest! {
    #[test]
    fn flipping_any_bit_of_the_text_leaves_the_covered_fields_or_breaks_the_mac(
        base in small(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let base = sealed(base);
        let mut text = base.encode().to_vec();
        let at = at.index(text.len());
        text[at] ^= 1 << bit;
        let judgement = authenticator(base.cluster.as_str()).judge(&text);
        match judgement.verdict {
            Verdict::Authentic => {
                let read = judgement.record.unwrap();
                prop_assert_eq!(canonical_bytes(&read), canonical_bytes(&base));
            }
            // The name of the field `mac` was hit: no MAC is left.
            Verdict::Unsigned => prop_assert!(judgement.record.unwrap().mac.is_none()),
            Verdict::Forged | Verdict::Unreadable => {}
        }
    }
}

#[test]
fn flipping_any_byte_of_a_covered_value_breaks_the_mac() {
    let base = sealed(LeaseRecord {
        last_snapshot: mark(5, "2026-10-12T09:58:41.517Z"),
        ..record("orders", "s-1", 7, 1)
    });
    let text = base.encode().to_vec();
    let value = |field: &str| {
        let shown = String::from_utf8(text.clone()).unwrap();
        let start = shown.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        start..start + shown[start..].find([',', '}']).unwrap()
    };
    let covered = [
        "cluster",
        "holder",
        "epoch",
        "ttl_seconds",
        "last_snapshot_epoch",
        "last_snapshot_at",
        "mac",
    ];
    for at in covered.into_iter().flat_map(value) {
        for bit in 0..8 {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            let verdict = authenticator("orders").judge(&changed).verdict;
            assert_ne!(verdict, Verdict::Authentic, "{}", String::from_utf8_lossy(&changed));
            assert_ne!(verdict, Verdict::Unsigned, "{}", String::from_utf8_lossy(&changed));
        }
    }
}
