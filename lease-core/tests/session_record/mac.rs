//! What a MAC is worth: nothing that it covers can change, and no record passes for one of another
//! kind, name or instance.

use crate::given::{
    STATES, any_named, any_session, authenticator, cluster, epoch, id, lease, lease_key, named,
    session,
};
use lease_core::{
    auth::{Authenticator, ClusterSecret, Objection, Verdict, canonical_bytes},
    record::{KeyedRecord, LeaseRecord, Nonce, Record as _, Ttl},
    session::{
        SessionState,
        record::{NamedLeaseRecord, SessionRecord},
    },
};
use proptest::prelude::*;
use std::time::Duration;

fn sealed<R: KeyedRecord>(mut record: R) -> R {
    authenticator().seal(&mut record, true);
    record
}

fn verdict<R: KeyedRecord>(record: &R) -> Verdict {
    authenticator().judge_at::<R>(&record.encode(), record.object_key()).verdict
}

#[test]
fn what_is_sealed_is_authentic_where_it_is_kept_and_nowhere_else() {
    for state in STATES {
        let record = sealed(session(state));
        assert_eq!(verdict(&record), Verdict::Authentic);
        let elsewhere = cluster().session_key(&id("s-2"));
        let judged = authenticator().judge_at::<SessionRecord>(&record.encode(), &elsewhere);
        assert_eq!((judged.verdict, judged.why), (Verdict::Forged, Some(Objection::OtherKey)));
        assert!(!judged.foreign_key);
    }
    let record = sealed(named("a"));
    assert_eq!(verdict(&record), Verdict::Authentic);
    for auth in [authenticator(), Authenticator::new(cluster(), None)] {
        let judged = auth.judge_at::<NamedLeaseRecord>(&record.encode(), &lease_key("b"));
        assert_eq!((judged.verdict, judged.why), (Verdict::Forged, Some(Objection::OtherKey)));
    }
}

#[test]
fn a_record_that_is_copied_and_renamed_does_not_verify() {
    let mut copied = sealed(named("a"));
    copied.object_key = lease_key("b");
    assert_eq!(verdict(&copied), Verdict::Forged);

    let mut copied = sealed(session(SessionState::Killed));
    copied.object_key = cluster().session_key(&id("s-2"));
    assert_eq!(verdict(&copied), Verdict::Forged);
}

#[test]
fn no_kind_passes_for_another() {
    let mut plain = lease(Some("s-1"));
    authenticator().seal(&mut plain, true);
    assert_eq!(authenticator().judge(&plain.encode()).verdict, Verdict::Authentic);
    let (session, named) = (sealed(session(SessionState::Live)), sealed(named("a")));

    // A lease's reader ignores the fields that it does not know; the label it does not.
    for content in [session.encode(), named.encode()] {
        assert_eq!(authenticator().judge(&content).verdict, Verdict::Forged);
    }
    let judge = |mac| {
        let mut other = session.clone();
        other.lease.mac = mac;
        assert_eq!(verdict(&other), Verdict::Forged);
        let mut other = named.clone();
        other.lease.mac = mac_of_other(&named, &session);
        assert_eq!(verdict(&other), Verdict::Forged);
    };
    judge(plain.mac.clone());
    judge(named.lease.mac.clone());
    assert!(LeaseRecord::decode(&named.encode()).is_ok());
}

/// A MAC over the same lease fields and the same key, of the other kind.
fn mac_of_other(
    named: &NamedLeaseRecord,
    session: &SessionRecord,
) -> Option<lease_core::record::Label> {
    let lease = named.lease.clone();
    sealed(SessionRecord { lease, object_key: named.object_key.clone(), ..session.clone() })
        .lease
        .mac
}

#[test]
fn every_covered_field_of_a_session_is_covered_and_the_others_are_not() {
    type Change = fn(&mut SessionRecord);
    let covered: [(&str, Change); 7] = [
        ("life", |r| r.life = Nonce::from_bytes([2; 16])),
        ("held back", |r| r.state = SessionState::HeldBack),
        ("epoch", |r| r.lease.epoch = epoch(8)),
        ("ttl", |r| r.lease.ttl = Ttl::new(Duration::from_millis(29_999)).unwrap()),
        ("killed", |r| (r.state, r.lease.holder) = (SessionState::Killed, None)),
        ("released", |r| (r.state, r.lease.holder) = (SessionState::Released, None)),
        ("tombstone", |r| (r.state, r.lease.holder) = (SessionState::Tombstone, None)),
    ];
    for (what, change) in covered {
        let mut changed = sealed(session(SessionState::Live));
        change(&mut changed);
        assert_eq!(verdict(&changed), Verdict::Forged, "{what}");
    }
    // A session that has ended, told as having ended otherwise.
    let ended = STATES.into_iter().filter(|state| !state.is_renewed());
    for (from, to) in ended.clone().flat_map(|from| ended.clone().map(move |to| (from, to))) {
        let changed = SessionRecord { state: to, ..sealed(session(from)) };
        let expected = if from == to { Verdict::Authentic } else { Verdict::Forged };
        assert_eq!(verdict(&changed), expected, "{from:?} {to:?}");
    }
    let mut changed = sealed(session(SessionState::Live));
    (changed.lease.seq, changed.lease.nonce) = (9, Some(Nonce::from_bytes([3; 16])));
    assert_eq!(verdict(&changed), Verdict::Authentic);
}

#[test]
fn every_covered_field_of_a_named_lease_is_covered() {
    type Change = fn(&mut NamedLeaseRecord);
    let covered: [(&str, Change); 6] = [
        ("epoch", |r| r.lease.epoch = epoch(8)),
        ("release", |r| r.lease.holder = None),
        ("session", |r| (r.session, r.lease.holder) = (id("s-2"), Some(id("s-2")))),
        ("session_epoch", |r| r.life.epoch = epoch(2)),
        ("session_life", |r| r.life.nonce = Nonce::from_bytes([2; 16])),
        ("held_back", |r| r.held_back = true),
    ];
    for (what, change) in covered {
        let mut changed = sealed(named("a"));
        change(&mut changed);
        assert_eq!(verdict(&changed), Verdict::Forged, "{what}");
    }
    let mut held_back = NamedLeaseRecord { held_back: true, ..named("a") };
    held_back = sealed(held_back);
    assert_eq!(verdict(&held_back), Verdict::Authentic);
    assert_eq!(verdict(&NamedLeaseRecord { held_back: false, ..held_back }), Verdict::Forged);
}

#[test]
fn another_secret_and_another_cluster_are_told() {
    let other = ClusterSecret::new(b"another secret of thirty-two bytes").unwrap();
    let mut foreign = named("a");
    Authenticator::new(cluster(), Some(&other)).seal(&mut foreign, true);
    let judged = authenticator().judge_at::<NamedLeaseRecord>(&foreign.encode(), &lease_key("a"));
    assert_eq!((judged.verdict, judged.foreign_key), (Verdict::Forged, true));

    let mut billing = named("a");
    billing.lease.cluster = "billing".parse().unwrap();
    authenticator().seal(&mut billing, true);
    assert!(billing.lease.mac.is_none(), "never signed by mistake");
    let judged = authenticator().judge_at::<NamedLeaseRecord>(&billing.encode(), &lease_key("a"));
    assert_eq!((judged.verdict, judged.why), (Verdict::Forged, Some(Objection::OtherCluster)));
}

/// All that the MAC covers, of records over few values, so that equal ones come up.
fn few() -> impl Strategy<Value = NamedLeaseRecord> {
    let texts = (prop::sample::select(vec!["a", "a1", "1"]), "[a1]{1,2}");
    let numbers = (1..3_u64, prop::sample::select(vec![1, 2, 1 << 53, u64::MAX]));
    (texts, numbers, any::<[bool; 3]>()).prop_map(|((session, name), (own, under), [a, b, c])| {
        let mut record = named(&name);
        record.lease.epoch = epoch(own);
        record.lease.holder = a.then(|| id(session));
        record.session = id(session);
        record.life.epoch = epoch(under);
        record.life.nonce = Nonce::from_bytes([b.into(); 16]);
        record.held_back = c;
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn different_records_have_different_canonical_bytes(a in few(), b in few()) {
        prop_assert_eq!(a == b, canonical_bytes(&a) == canonical_bytes(&b));
    }
}

proptest! {
    #[test]
    fn records_of_two_kinds_never_have_the_same_bytes(a in any_session(), b in any_named()) {
        prop_assert_ne!(canonical_bytes(&a), canonical_bytes(&b));
        prop_assert_ne!(canonical_bytes(&a), canonical_bytes(&a.lease));
        prop_assert_ne!(canonical_bytes(&b), canonical_bytes(&b.lease));
    }

    #[test]
    fn flipping_any_bit_of_the_text_leaves_the_covered_fields_or_breaks_the_mac(
        base in few(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let base = sealed(base);
        let mut text = base.encode().to_vec();
        let at = at.index(text.len());
        text[at] ^= 1 << bit;
        let judged = authenticator().judge_at::<NamedLeaseRecord>(&text, &base.object_key);
        match judged.verdict {
            Verdict::Authentic => {
                prop_assert_eq!(canonical_bytes(&judged.record.unwrap()), canonical_bytes(&base));
            }
            // The name of the field `mac` was hit: no MAC is left.
            Verdict::Unsigned => prop_assert!(judged.record.unwrap().lease.mac.is_none()),
            Verdict::Forged | Verdict::Unreadable => {}
        }
    }
}
