//! Which servers are taken, and by the name of what the others are refused.

use crate::{connected, found, key, trials};
use lease_core::{
    LeaseStore as _, Read, StoreErrorKind, Version,
    probe::{ProbeStep, Refusal},
};
use lease_s3::{
    Dialect, ObjectLock, OpenError, S3Store,
    testing::{Fault, Method, Quirk, TestServer},
};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_plain_server_is_taken_and_left_as_it_was,
        case_02_writing_a_missing_object_by_if_match_is_refused,
        case_03_a_server_that_ignores_conditions_is_refused,
        case_04_a_server_without_conditional_writes_is_refused_after_one_write,
        case_05_three_winners_of_a_race_are_refused_with_their_count,
        case_06_bare_etags_are_found_and_spoken,
        case_07_weak_and_rewritten_etags_are_refused,
        case_07_an_etag_that_only_reads_tell_is_enough,
        ages_by_two_clocks_are_not_told,
        object_lock_is_refused_unless_allowed,
        object_lock_that_cannot_be_told_is_a_choice,
        a_server_that_is_silent_is_given_up,
        an_unprobed_store_says_that_it_needs_a_probe,
    ]
}

async fn connect(quirks: &[Quirk]) -> (TestServer, Result<S3Store, OpenError>) {
    let server = TestServer::start().await.unwrap();
    server.set_quirks(quirks);
    let connected = server.options("p").connect().await;
    (server, connected)
}

async fn refusal(quirks: &[Quirk]) -> Refusal {
    let (server, connected) = connect(quirks).await;
    assert_eq!(server.keys(), [""; 0], "what the probe wrote is removed");
    connected.unwrap_err().refusal().unwrap().clone()
}

async fn a_plain_server_is_taken_and_left_as_it_was() {
    let (server, store) = connect(&[]).await;
    let store = store.unwrap();
    let report = store.probe_report().unwrap();
    assert!(report.not_modified && report.tells_age, "{report:?}");
    assert_eq!((report.contended, report.in_doubt), (0, 0));
    assert_eq!(store.dialect(), Dialect::Quoted);
    assert!(!store.needs_probe());
    assert_eq!(server.keys(), [""; 0]);
    let requests = server.take_requests();
    assert_eq!((requests.delete, requests.other), (3, 0));
    // One more than the probe's own: that for object lock.
    assert_eq!(requests.get + requests.put, report.requests + 1);
}

async fn case_02_writing_a_missing_object_by_if_match_is_refused() {
    let refusal = refusal(&[Quirk::WritesMissing]).await;
    assert_eq!(refusal.step, ProbeStep::ReplaceMissing);
}

async fn case_03_a_server_that_ignores_conditions_is_refused() {
    let everything_is_200 = [Quirk::IgnoresIfMatch, Quirk::IgnoresIfNoneMatch];
    assert_eq!(refusal(&everything_is_200).await.step, ProbeStep::CreateExisting);
    assert_eq!(refusal(&[Quirk::IgnoresIfNoneMatch]).await.step, ProbeStep::CreateExisting);
    assert_eq!(refusal(&[Quirk::IgnoresIfMatch]).await.step, ProbeStep::ReplaceStale);
}

async fn case_04_a_server_without_conditional_writes_is_refused_after_one_write() {
    for status in [501, 400] {
        let (server, connected) = connect(&[Quirk::NotImplemented(status)]).await;
        let error = connected.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.step, ProbeStep::CreateMissing);
        assert!(refusal.found.contains("NotImplemented"), "{refusal}");
        assert_eq!(server.take_requests().put, 1);
        assert_eq!(server.writes(), 0);
    }
    // Not allowed is not unsupported.
    let (_server, connected) = connect(&[Quirk::ReadOnly]).await;
    let error = connected.unwrap_err();
    let OpenError::Unavailable { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("s3:PutObject"), "{error}");
}

async fn case_05_three_winners_of_a_race_are_refused_with_their_count() {
    let races = [
        (Quirk::LetsCreatorsWin(3), ProbeStep::RaceCreates),
        (Quirk::LetsReplacersWin(3), ProbeStep::RaceReplaces),
    ];
    for (quirk, step) in races {
        let refusal = refusal(&[quirk]).await;
        assert_eq!(refusal.step, step);
        assert!(refusal.found.contains("3 of 16 writers won"), "{refusal}");
    }
}

async fn case_06_bare_etags_are_found_and_spoken() {
    let (server, store) = connect(&[Quirk::BareIfMatch]).await;
    let store = store.unwrap();
    assert_eq!(store.dialect(), Dialect::Bare);
    let mut version = store.create_if_absent(&key(), "0".into()).await.unwrap();
    for renewal in 1..20 {
        let next = store.replace_if_match(&key(), renewal.to_string().into(), &version).await;
        let lost = store.replace_if_match(&key(), "late".into(), &version).await.unwrap_err();
        assert_eq!(lost.kind(), StoreErrorKind::Precondition);
        version = next.unwrap();
        let poll = store.read_versioned(&key(), Some(&version)).await.unwrap();
        assert_eq!(poll, Read::NotModified);
    }
    // Without quotes a wrong one must not be taken either.
    server.set_quirks(&[Quirk::BareIfMatch, Quirk::IgnoresIfMatch]);
    let error = server.options("p").connect().await.unwrap_err();
    assert_eq!(error.refusal().unwrap().step, ProbeStep::ReplaceStale, "{error}");
}

async fn case_07_weak_and_rewritten_etags_are_refused() {
    let quirks = [
        (Quirk::WeakEtags, "a weak ETag"),
        (Quirk::RewrittenEtags, "rewritten"),
        (Quirk::NoEtag, "no ETag"),
    ];
    for (quirk, expected) in quirks {
        let refusal = refusal(&[quirk]).await;
        assert_eq!(refusal.step, ProbeStep::CreateMissing);
        assert!(refusal.found.contains(expected), "{refusal}");
        // On a store that was fine before, too: nothing is written.
        let (server, store) = connected().await;
        server.put_by_hand(crate::OBJECT, "content");
        server.set_quirks(&[quirk]);
        let error = store.read_versioned(&key(), None).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(server.take_requests().put, 0);
    }
}

async fn case_07_an_etag_that_only_reads_tell_is_enough() {
    let (server, store) = connect(&[Quirk::NoEtagOnPut]).await;
    let store = store.unwrap();
    let _before = server.take_requests();
    let version = store.create_if_absent(&key(), "mine".into()).await.unwrap();
    assert_eq!(version, Version::new(server.tag(crate::OBJECT).unwrap()));
    let requests = server.take_requests();
    assert_eq!((requests.put, requests.get), (1, 1), "read back once");
    assert_eq!(found(&store).await, ("mine".into(), version.clone()));
    // What was written and then replaced, or cannot be read back, is in doubt.
    server.next(Method::GET, Fault::Answer(503, "SlowDown"));
    let doubt = store.replace_if_match(&key(), "again".into(), &version).await.unwrap_err();
    assert_eq!(doubt.kind(), StoreErrorKind::InDoubt, "{doubt}");
}

async fn ages_by_two_clocks_are_not_told() {
    let age = async |quirk: &[Quirk]| {
        let (_server, store) = connect(quirk).await;
        let store = store.unwrap();
        store.create_if_absent(&key(), "content".into()).await.unwrap();
        match store.read_versioned(&key(), None).await.unwrap() {
            Read::Found { age, .. } => age.map(|age| age.as_secs()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(age(&[]).await, Some(0));
    assert_eq!(age(&[Quirk::DateAhead(3600)]).await, None);
}

async fn object_lock_is_refused_unless_allowed() {
    let (server, connected) = connect(&[Quirk::ObjectLock]).await;
    let error = connected.unwrap_err();
    assert!(matches!(error, OpenError::ObjectLock { .. }), "{error}");
    assert_eq!(server.take_requests().put, 0, "nothing is written to such a bucket");
    for choice in [ObjectLock::AllowUnknown, ObjectLock::Refuse] {
        let error = server.options("p").object_lock(choice).connect().await.unwrap_err();
        assert!(matches!(error, OpenError::ObjectLock { .. }), "{error}");
    }
    server.options("p").object_lock(ObjectLock::Allow).connect().await.unwrap();
    // An answer of 200 proves nothing.
    connect(&[Quirk::ObjectLockIsAListing]).await.1.unwrap();
}

async fn object_lock_that_cannot_be_told_is_a_choice() {
    let (server, connected) = connect(&[Quirk::ObjectLockForbidden]).await;
    let error = connected.unwrap_err();
    assert!(matches!(error, OpenError::ObjectLockUnknown { .. }), "{error}");
    assert!(error.to_string().contains("allow_object_lock=unknown"), "{error}");
    server.options("p").object_lock(ObjectLock::AllowUnknown).connect().await.unwrap();
}

async fn a_server_that_is_silent_is_given_up() {
    let server = TestServer::start().await.unwrap();
    let held = lease_s3::testing::Held::new();
    server.next(Method::PUT, Fault::Hold(held));
    let options = server.options("p").connect_limit(std::time::Duration::from_millis(200));
    let error = options.connect().await.unwrap_err();
    assert!(matches!(error, OpenError::Silent { .. }), "{error}");
}

async fn an_unprobed_store_says_that_it_needs_a_probe() {
    let server = TestServer::start().await.unwrap();
    let store = server.options("p").unprobed().unwrap();
    assert!(store.needs_probe() && store.probe_report().is_none());
    lease_core::probe::probe(&store, &key()).await.unwrap();
}
