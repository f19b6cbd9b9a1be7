//! What each thing that can happen to a request is told as.

use crate::{OBJECT, connected, found, key, text, trials, with_object};
use lease_core::{LeaseStore as _, Read, StoreError, StoreErrorKind, StoreErrorKind::*, Version};
use lease_s3::{
    S3Store,
    testing::{Fault, Held, Late, Method, TestServer},
};
use libtest_mimic::Trial;
use std::time::Duration;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        every_status_of_a_write_is_told_as_what_is_known,
        every_status_of_a_read_is_no_answer_but_three,
        case_08_what_landed_without_a_reply_is_in_doubt_and_found_again,
        a_connection_closed_without_a_reply_is_in_doubt_whether_it_landed_or_not,
        a_write_that_lands_late_is_in_doubt_and_conditional,
        a_time_out_is_in_doubt,
        case_07_no_condition_is_empty_or_matches_everything,
        an_endless_body_is_not_read_to_its_end,
        a_redirected_write_is_not_believed,
        a_304_for_another_version_is_not_believed,
        a_404_that_is_no_stores_is_not_missing,
        nothing_is_ever_sent_twice,
    ]
}

/// What a create and a replace are told when they meet this fault.
async fn told(fault: &Fault) -> [StoreErrorKind; 2] {
    let (server, store, version) = with_object("old").await;
    server.next(Method::PUT, fault.clone());
    let replaced = store.replace_if_match(&key(), "new".into(), &version).await.unwrap_err();
    server.remove_by_hand(OBJECT);
    server.next(Method::PUT, fault.clone());
    let created = store.create_if_absent(&key(), "new".into()).await.unwrap_err();
    assert!(text(&replaced).contains("orders/lease.json in s3://leases/p"), "{replaced}");
    assert_eq!(server.take_requests().put, 2, "{fault:?}");
    [created.kind(), replaced.kind()]
}

async fn every_status_of_a_write_is_told_as_what_is_known() {
    let both = |kind| [kind, kind];
    let table = [
        (412, "PreconditionFailed", both(Precondition)),
        (404, "NoSuchKey", [Unavailable, Precondition]),
        (404, "NoSuchBucket", both(Unavailable)),
        (304, "", [Precondition, InDoubt]),
        (409, "ConditionalRequestConflict", both(Contended)),
        (409, "OperationAborted", both(Contended)),
        (400, "InvalidArgument", both(Unavailable)),
        (400, "NotImplemented", both(Unsupported)),
        (401, "Unauthorized", both(Unavailable)),
        (403, "AccessDenied", both(Unavailable)),
        (403, "RequestTimeTooSkewed", both(Unavailable)),
        (403, "NotImplemented", both(Unavailable)),
        (405, "MethodNotAllowed", both(Unavailable)),
        (408, "RequestTimeout", both(InDoubt)),
        (429, "SlowDown", both(InDoubt)),
        (301, "PermanentRedirect", both(Unavailable)),
        (307, "TemporaryRedirect", both(Unavailable)),
        (500, "InternalError", both(InDoubt)),
        (501, "NotImplemented", both(Unsupported)),
        (502, "", both(InDoubt)),
        (503, "SlowDown", both(InDoubt)),
        (504, "", both(InDoubt)),
        (599, "", both(InDoubt)),
        (202, "", both(InDoubt)),
        (206, "", both(InDoubt)),
        // An error that is dressed as a success.
        (200, "InternalError", both(InDoubt)),
    ];
    for (status, code, expected) in table {
        let kinds = told(&Fault::Answer(status, code)).await;
        assert_eq!(kinds, expected, "{status} {code}: [create, replace]");
    }
    assert_eq!(told(&Fault::ApplyThenAnswer(500, "InternalError")).await, both(InDoubt));
    assert_eq!(told(&Fault::Drop).await, both(InDoubt));
}

async fn every_status_of_a_read_is_no_answer_but_three() {
    let (server, store, _) = with_object("content").await;
    for status in [202, 301, 304, 400, 401, 403, 404, 408, 409, 412, 416, 429, 500, 502, 503, 504] {
        server.next(Method::GET, Fault::Answer(status, "SomeError"));
        let error = store.read_versioned(&key(), None).await.unwrap_err();
        assert_eq!(error.kind(), Unavailable, "{status}: {}", text(&error));
    }
    server.next(Method::GET, Fault::Answer(501, "NotImplemented"));
    assert_eq!(store.read_versioned(&key(), None).await.unwrap_err().kind(), Unsupported);
    server.next(Method::GET, Fault::Drop);
    assert_eq!(store.read_versioned(&key(), None).await.unwrap_err().kind(), Unavailable);
    server.next(Method::GET, Fault::Answer(404, "NoSuchKey"));
    assert_eq!(store.read_versioned(&key(), None).await.unwrap(), Read::Missing);
    assert_eq!(found(&store).await.0, "content");
}

async fn case_08_what_landed_without_a_reply_is_in_doubt_and_found_again() {
    let (server, store, version) = with_object("old").await;
    server.next(Method::PUT, Fault::ApplyThenDrop);
    let lost = store.replace_if_match(&key(), "mine".into(), &version).await.unwrap_err();
    assert_eq!(lost.kind(), InDoubt, "{}", text(&lost));
    // The next try conflicts with oneself, and a read shows with whom.
    let again = store.replace_if_match(&key(), "mine".into(), &version).await.unwrap_err();
    assert_eq!(again.kind(), Precondition);
    let (content, version) = found(&store).await;
    assert_eq!(content, "mine");
    store.replace_if_match(&key(), "next".into(), &version).await.unwrap();
}

async fn a_connection_closed_without_a_reply_is_in_doubt_whether_it_landed_or_not() {
    let (server, store) = connected().await;
    for fault in [Fault::Drop, Fault::ApplyThenDrop] {
        server.next(Method::PUT, fault);
        let lost = store.create_if_absent(&key(), "mine".into()).await.unwrap_err();
        assert_eq!(lost.kind(), InDoubt, "{}", text(&lost));
    }
    assert_eq!(server.content(OBJECT).unwrap(), "mine");
}

async fn a_write_that_lands_late_is_in_doubt_and_conditional() {
    let (server, store, version) = with_object("old").await;
    let late = Late::new();
    for content in ["late", "later"] {
        server.next(Method::PUT, Fault::LandLater(late.clone()));
        let lost = store.replace_if_match(&key(), content.into(), &version).await.unwrap_err();
        assert_eq!(lost.kind(), InDoubt);
    }
    assert_eq!(server.content(OBJECT).unwrap(), "old");
    assert_eq!(late.land().await, [200, 412]);
    assert_eq!(found(&store).await.0, "late");
}

async fn a_time_out_is_in_doubt() {
    let server = TestServer::start().await.unwrap();
    let options = object_store::ClientOptions::new().with_timeout(Duration::from_millis(300));
    let store = S3Store::from_builder(server.builder().with_client_options(options), "p");
    let store = store.unwrap().connect().await.unwrap();
    for fault in [Fault::Hold(Held::new()), Fault::ApplyThenHold(Held::new())] {
        server.next(Method::PUT, fault);
        let lost = store.create_if_absent(&key(), "mine".into()).await.unwrap_err();
        assert_eq!(lost.kind(), InDoubt, "{}", text(&lost));
    }
    assert_eq!(server.content(OBJECT).unwrap(), "mine");
    server.next(Method::GET, Fault::Hold(Held::new()));
    assert_eq!(store.read_versioned(&key(), None).await.unwrap_err().kind(), Unavailable);
}

async fn case_07_no_condition_is_empty_or_matches_everything() {
    let (server, store, _) = with_object("content").await;
    for tag in ["", "*", "\"*\"", "a, b"] {
        let version = Version::new(tag);
        let refused = store.replace_if_match(&key(), "new".into(), &version).await.unwrap_err();
        assert_eq!(refused.kind(), Precondition, "{tag}");
    }
    assert_eq!(server.take_requests().put, 0, "none was sent");
    let read = store.read_versioned(&key(), Some(&Version::new("*"))).await.unwrap();
    assert!(matches!(read, Read::Found { .. }), "{read:?}");
}

async fn an_endless_body_is_not_read_to_its_end() {
    let (server, store, version) = with_object("content").await;
    server.next(Method::GET, Fault::EndlessBody);
    let error = store.read_versioned(&key(), None).await.unwrap_err();
    let StoreError::Corrupt { version: told, .. } = &error else { panic!("{error}") };
    assert_eq!(told.tag(), "endless");
    // Nor is that of a reply to a write, which was written nevertheless.
    server.next(Method::PUT, Fault::EndlessBody);
    let told = store.replace_if_match(&key(), "new".into(), &version).await.unwrap();
    assert_eq!(told.tag(), "endless");
}

async fn a_redirected_write_is_not_believed() {
    for status in [301, 302, 303, 307, 308] {
        let (server, store, version) = with_object("old").await;
        server.put_by_hand("elsewhere", "elsewhere");
        server.next(Method::PUT, Fault::Redirect(status, "/leases/elsewhere"));
        let error = store.replace_if_match(&key(), "new".into(), &version).await.unwrap_err();
        assert!(matches!(error.kind(), InDoubt | Unavailable), "{status}: {}", text(&error));
        assert_eq!(server.content(OBJECT).unwrap(), "old");
        server.next(Method::GET, Fault::Redirect(status, "/leases/elsewhere"));
        let error = store.read_versioned(&key(), None).await.unwrap_err();
        assert_eq!(error.kind(), Unavailable, "{status}: {}", text(&error));
    }
}

async fn a_304_for_another_version_is_not_believed() {
    let (server, store, version) = with_object("content").await;
    server.next(Method::GET, Fault::Answer(304, ""));
    assert_eq!(store.read_versioned(&key(), None).await.unwrap_err().kind(), Unavailable);
    server.next(Method::GET, Fault::Answer(304, ""));
    let read = store.read_versioned(&key(), Some(&version)).await.unwrap();
    assert_eq!(read, Read::NotModified, "a 304 need not tell the version");
}

async fn a_404_that_is_no_stores_is_not_missing() {
    let (server, store) = connected().await;
    assert_eq!(store.read_versioned(&key(), None).await.unwrap(), Read::Missing);
    for code in ["", "NoSuchBucket", "NotFound"] {
        server.next(Method::GET, Fault::Answer(404, code));
        let error = store.read_versioned(&key(), None).await.unwrap_err();
        assert_eq!(error.kind(), Unavailable, "{code}");
    }
}

async fn nothing_is_ever_sent_twice() {
    let (server, store, version) = with_object("old").await;
    for fault in [
        Fault::Drop,
        Fault::Answer(500, "InternalError"),
        Fault::Answer(503, "SlowDown"),
        Fault::Answer(429, "SlowDown"),
        Fault::Answer(408, "RequestTimeout"),
        Fault::Answer(409, "ConditionalRequestConflict"),
    ] {
        for method in [Method::PUT, Method::GET] {
            server.next(method, fault.clone());
        }
        store.replace_if_match(&key(), "new".into(), &version).await.unwrap_err();
        store.read_versioned(&key(), None).await.unwrap_err();
        let requests = server.take_requests();
        assert_eq!((requests.put, requests.get), (1, 1), "{fault:?}");
    }
}
