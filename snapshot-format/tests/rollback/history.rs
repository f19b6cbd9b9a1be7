//! Facts from a lease and from an instance's history.

use crate::support::{epoch, name, secret};
use snapshot_format::{
    lease_core::{
        auth::Authenticator,
        history::History,
        key::{ClusterName, InstanceId},
        machine::Inherited,
        record::{Label, LeaseRecord, SnapshotMark},
    },
    rollback::{Lease, OwnDatabase, Standing},
};

fn cluster() -> ClusterName {
    ClusterName::new("prod").unwrap()
}

fn record(last_snapshot: Option<SnapshotMark>) -> LeaseRecord {
    let text = br#"{"cluster":"prod","holder":"s-1","epoch":9,"seq":1,"ttl_seconds":30}"#;
    LeaseRecord { last_snapshot, ..LeaseRecord::decode(text).unwrap() }
}

fn at(text: &str) -> Option<SnapshotMark> {
    Some(SnapshotMark { epoch: epoch(9), at: Label::new(text).unwrap() })
}

#[test]
fn a_lease_is_what_its_judgement_says() {
    let ours = Authenticator::new(cluster(), Some(&secret(1)));
    let mark = name(9, 1).mark();
    let mut signed = record(Some(mark.into()));
    ours.seal(&mut signed, true);
    let found = Lease::judged(&ours.judge(&signed.encode()));
    assert_eq!(found, Lease::Authentic { epoch: epoch(9), last_snapshot: Some(mark) });

    let theirs = Authenticator::new(cluster(), Some(&secret(2)));
    assert_eq!(Lease::judged(&theirs.judge(&signed.encode())), Lease::Forged);
    assert_eq!(Lease::judged(&ours.judge(&record(Some(mark.into())).encode())), Lease::Unsigned);
    assert_eq!(Lease::judged(&ours.judge(b"junk")), Lease::Unreadable);

    // What it names has to be comparable: an offset in place of `Z`, a leap second, no time at all.
    for odd in ["2026-10-12T09:58:41.517+00:00", "2026-10-12T23:59:60.000Z", "yesterday", ""] {
        let mut signed = record(at(odd));
        ours.seal(&mut signed, true);
        assert_eq!(Lease::judged(&ours.judge(&signed.encode())), Lease::Unreadable, "{odd}");
    }
}

#[test]
fn what_was_inherited_is_the_same_as_what_was_judged() {
    let mut inherited = Inherited::default();
    assert_eq!(Lease::inherited(&inherited), Lease::Missing);
    let ours = Authenticator::new(cluster(), Some(&secret(1)));
    let mut signed = record(Some(name(9, 1).mark().into()));
    ours.seal(&mut signed, true);
    for content in [signed.encode(), record(None).encode(), b"junk"[..].into()] {
        let judged = ours.judge(&content);
        inherited.verdict = Some(judged.verdict);
        inherited.epoch = judged.record.as_ref().map(|record| record.epoch);
        inherited.last_snapshot = judged.record.as_ref().and_then(|it| it.last_snapshot.clone());
        assert_eq!(Lease::inherited(&inherited), Lease::judged(&judged));
    }
}

#[test]
fn an_instance_stands_where_its_history_says() {
    let standing = |inherited: &Inherited, history: &History| {
        Standing::new(InstanceId::new("s-1").unwrap(), OwnDatabase::Empty, inherited, history)
    };
    // The takeover's own lease, signed, is in the history by now. It is no sign of a cluster.
    let mut history = History { seen_authenticated_lease: true, ..History::default() };
    let first = standing(&Inherited::default(), &history).unwrap();
    assert!(!first.knew_the_cluster && !first.seen_authenticated_lease);

    let mut inherited = Inherited::default();
    (inherited.knew_the_cluster, inherited.seen_authenticated) = (true, true);
    history.last_epoch = Some(epoch(7));
    history.newest_snapshot = Some(name(7, 1).mark().into());
    history.newest_named_snapshot = Some(name(8, 2).mark().into());
    let later = standing(&inherited, &history).unwrap();
    assert!(later.knew_the_cluster && later.seen_authenticated_lease);
    assert_eq!(later.last_epoch, Some(epoch(7)));
    assert_eq!(later.newest_snapshot, Some(name(7, 1).mark()));
    assert_eq!(later.newest_named, Some(name(8, 2).mark()));

    // A mark that cannot be compared is never taken for none.
    history.newest_named_snapshot = at("yesterday");
    standing(&inherited, &history).unwrap_err();
}
