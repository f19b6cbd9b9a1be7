//! A lease on the server: what goes over the wire, and what a lost reply, a 409, a 404 do to it.

use crate::{
    rig::{failed, next, record_of_another, renewed},
    trials,
};
use lease_core::{
    LeaseManager, Tenure, Timing,
    machine::{Attempted, EndReason, EpochOrigin, Event, LeaseSeen},
    record::LeaseRecord,
    runner::{AcquireError, EventStream, LeaseBuilder},
    store::StoreErrorKind,
};
use lease_s3::{
    S3Store,
    testing::{Fault, Method, TestServer},
};
use libtest_mimic::Trial;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        case_01_a_conflict_is_no_lost_race,
        case_01_a_conflict_with_another_holder_is_one,
        case_02_a_lease_that_is_gone_is_lost_at_once,
        case_04_without_conditional_writes_there_is_one_write_and_no_lease,
        case_08_a_lost_reply_and_another_holder_is_lost,
        case_10_refused_signatures_are_signed_anew,
        case_12_a_release_is_a_conditional_write_that_keeps_the_epoch,
        case_12_a_release_that_came_too_late_is_told_as_lost,
    ]
}

pub(crate) const T: Duration = Duration::from_millis(2_000);
pub(crate) const R: Duration = Duration::from_millis(200);
const LEASE: &str = "p/orders/lease.json";

pub(crate) fn builder(store: impl lease_core::LeaseStore) -> LeaseBuilder {
    LeaseManager::builder(store, "orders").timing(Timing::short(T, R).unwrap()).ephemeral_instance()
}

async fn server() -> (TestServer, S3Store) {
    let server = TestServer::start().await.unwrap();
    let store = server.options("p").connect().await.unwrap();
    let _before = server.take_requests();
    (server, store)
}

/// A lease that is held.
async fn held() -> (TestServer, LeaseManager, Tenure, EventStream) {
    let (server, store) = server().await;
    let lease = builder(store).start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    next(&mut events, |event| matches!(event, Event::Active { .. }).then_some(())).await;
    (server, lease, tenure, events)
}

fn record(server: &TestServer) -> LeaseRecord {
    LeaseRecord::decode(&server.content(LEASE).unwrap()).unwrap()
}

async fn case_01_a_conflict_is_no_lost_race() {
    let (server, store) = server().await;
    let conflict = Fault::Answer(409, "ConditionalRequestConflict");
    server.next(Method::PUT, conflict.clone());
    let lease = builder(store).start().await.unwrap();
    let mut events = lease.events();
    let before = server.writes();
    let acquiring = lease.acquire();
    let taking = next(&mut events, |event| matches!(event, Event::TakingOver { .. }).then_some(()));
    let (tenure, ()) = tokio::join!(acquiring, async {
        taking.await;
        assert_eq!((server.take_requests().put, server.writes() - before), (2, 1));
    });
    let tenure = tenure.unwrap();
    let before = renewed(&mut events).await;
    server.next(Method::PUT, conflict);
    // The conflict proves nothing; what was sent after it does.
    let after = renewed(&mut events).await;
    assert!(after > before);
    assert!(tenure.fence().is_open());
}

async fn case_01_a_conflict_with_another_holder_is_one() {
    let (server, lease, tenure, _events) = held().await;
    let another = record_of_another(tenure.epoch().as_u64() + 1);
    server.put_by_hand(LEASE, another);
    server.next(Method::PUT, Fault::Answer(409, "ConditionalRequestConflict"));
    let reason = tenure.ended().await;
    assert!(matches!(reason, EndReason::TakenOver { .. }), "{reason}");
    assert!(!tenure.fence().is_open());
    drop(lease);

    // Nor is a lease created over another's.
    let (server, store) = self::server().await;
    let (server, another) = (Arc::new(server), record_of_another(3));
    let (by_hand, record) = (Arc::downgrade(&server), another.clone());
    server.choose(move |seen| {
        let server = by_hand.upgrade().filter(|_| seen.method == Method::PUT)?;
        server.put_by_hand(LEASE, record.clone());
        Some(Fault::Answer(409, "ConditionalRequestConflict"))
    });
    let lease = builder(store).start().await.unwrap();
    let mut events = lease.events();
    let seen = async {
        next(&mut events, |event| match event {
            Event::LeaseSeen { lease: LeaseSeen::Held { epoch, .. } } => Some(epoch),
            _ => None,
        })
        .await
    };
    tokio::select! {
        tenure = lease.acquire() => panic!("{tenure:?}"),
        epoch = seen => assert_eq!(epoch.as_u64(), 3),
    }
    assert_eq!(server.content(LEASE).unwrap(), another);
}

async fn case_02_a_lease_that_is_gone_is_lost_at_once() {
    for (status, code) in [(404, "NoSuchKey"), (412, "PreconditionFailed")] {
        let (server, lease, tenure, _events) = held().await;
        let epoch = tenure.epoch();
        server.remove_by_hand(LEASE);
        server.next(Method::PUT, Fault::Answer(status, code));
        let before = server.writes();
        let reason = tenure.ended().await;
        assert_eq!(reason, EndReason::Deleted, "{status}");
        assert!(tenure.fence().check().is_err());
        // No further write at that epoch: what comes next is a new acquisition's.
        assert_eq!(server.writes(), before);
        drop(tenure);
        let next = lease.acquire().await.unwrap();
        assert!(next.epoch() > epoch);
    }
}

async fn case_04_without_conditional_writes_there_is_one_write_and_no_lease() {
    for status in [501, 400] {
        let (server, store) = server().await;
        server.choose(move |seen| {
            (seen.method == Method::PUT).then_some(Fault::Answer(status, "NotImplemented"))
        });
        let before = server.writes();
        let lease = builder(store).start().await.unwrap();
        let error = lease.acquire().await.unwrap_err();
        assert_eq!(error, AcquireError::StoreRefused);
        assert_eq!(server.take_requests().put, 1);
        assert_eq!(server.writes(), before);
    }
}

async fn case_08_a_lost_reply_and_another_holder_is_lost() {
    let (server, _lease, tenure, mut events) = held().await;
    server.next(Method::PUT, Fault::ApplyThenDrop);
    let attempt = failed(&mut events).await;
    assert_eq!(attempt, (Attempted::Renewal, StoreErrorKind::InDoubt));
    server.put_by_hand(LEASE, record_of_another(tenure.epoch().as_u64() + 1));
    let reason = tenure.ended().await;
    assert!(matches!(reason, EndReason::TakenOver { .. }), "{reason}");
}

async fn case_10_refused_signatures_are_signed_anew() {
    let (server, _lease, tenure, mut events) = held().await;
    let signatures = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&signatures);
    server.choose(move |seen| {
        let mut log = log.lock().unwrap();
        (seen.method == Method::PUT).then(|| log.push(seen.headers["authorization"].clone()))?;
        (log.len() <= 2).then_some(Fault::Answer(403, "RequestTimeTooSkewed"))
    });
    for _ in 0..2 {
        let attempt = failed(&mut events).await;
        assert_eq!(attempt, (Attempted::Renewal, StoreErrorKind::Unavailable));
    }
    renewed(&mut events).await;
    let signatures = signatures.lock().unwrap().clone();
    assert_eq!(signatures.len(), 3);
    // Each renewal differs in its content, so each has a signature of its own.
    assert!(signatures[0] != signatures[1] && signatures[1] != signatures[2]);
    assert!(tenure.fence().is_open());
}

async fn case_12_a_release_is_a_conditional_write_that_keeps_the_epoch() {
    let (server, store) = self::server().await;
    let lease = builder(store).epochs(EpochOrigin::Counter).start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let epoch = tenure.epoch();
    let conditional = Arc::new(Mutex::new(true));
    let all = Arc::clone(&conditional);
    server.choose(move |seen| {
        let has = |name: &str| seen.headers.contains_key(name);
        if seen.method == Method::PUT {
            *all.lock().unwrap() &= has("if-match") || has("if-none-match");
        }
        None
    });
    assert_eq!(tenure.release().await, EndReason::Released);
    assert!(record(&server).is_released());
    assert_eq!(record(&server).epoch, epoch);
    let next = lease.acquire().await.unwrap();
    assert_eq!(Some(next.epoch()), epoch.next().ok());
    let requests = server.take_requests();
    assert_eq!((requests.delete, requests.other), (0, 0), "{requests:?}");
    assert!(*conditional.lock().unwrap());
}

async fn case_12_a_release_that_came_too_late_is_told_as_lost() {
    let (server, _lease, tenure, _events) = held().await;
    let another = record_of_another(tenure.epoch().as_u64() + 1);
    let puts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&puts);
    server.choose(move |seen| {
        *count.lock().unwrap() += usize::from(seen.method == Method::PUT);
        None
    });
    server.put_by_hand(LEASE, another.clone());
    let reason = tenure.release().await;
    assert!(matches!(reason, EndReason::TakenOver { .. } | EndReason::Lost), "{reason}");
    assert_eq!(*puts.lock().unwrap(), 1, "no second write");
    assert_eq!(server.content(LEASE).unwrap(), another);
}
