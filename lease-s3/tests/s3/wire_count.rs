//! What goes over the wire, counted by the server. The clock is one that only the test moves, so that
//! each renewal and each poll is one that the machine wanted, and none is one that an overloaded host
//! made it repeat.

use crate::{
    OBJECT,
    rig::{R, Stepped, T, handled, record_of_another, renewed, server_elsewhere, stepped},
};
use lease_core::{
    Timing,
    runner::SessionManager,
    testing::{FaultStore, ManualClock},
};
use lease_s3::{
    S3Store,
    testing::{Requests, TestServer},
};
use libtest_mimic::{Failed, Trial};
use std::{sync::Arc, time::Duration};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(format!("wire_count::{name}"), test)
    };
    vec![
        trial("one_put_per_renewal_and_one_get_per_poll", || {
            on_one_thread(one_put_per_renewal_and_one_get_per_poll)
        }),
        trial("an_unchanged_lease_is_polled_without_its_content", || {
            on_one_thread(an_unchanged_lease_is_polled_without_its_content)
        }),
        trial("a_thousand_leases_under_a_session_are_renewed_by_the_put_that_renews_one", || {
            on_one_thread(a_thousand_leases_under_a_session_are_renewed_by_the_put_that_renews_one)
        }),
    ]
}

/// Runs a test beside its drivers, and the server elsewhere.
fn on_one_thread(test: impl AsyncFnOnce(TestServer, S3Store)) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let test = async {
        let server = server_elsewhere();
        let store = server.options("p").connect().await?;
        test(server, store).await;
        Ok(())
    };
    let limit = Duration::from_secs(120);
    runtime
        .block_on(async { tokio::time::timeout(limit, test).await })
        .map_err(|_| format!("not done within {limit:?}"))?
}

/// A standby looks at the lease when it is started, and then as a standby.
const FIRST_READS: usize = 2;

fn requests(get: usize, put: usize, not_modified: usize) -> Requests {
    let mut requests = Requests::default();
    (requests.get, requests.put, requests.not_modified) = (get, put, not_modified);
    requests
}

async fn one_put_per_renewal_and_one_get_per_poll(server: TestServer, store: S3Store) {
    let mut holder = Stepped::start(store.clone()).await;
    // The standby reads in the middle between two renewals.
    holder.clock.advance(R / 2);
    let watched = FaultStore::new(store);
    let standby = stepped(watched.clone(), &holder.clock).phase_lock(false).ephemeral_instance();
    let standby = standby.start().await.unwrap();
    handled(&watched, FIRST_READS).await;
    let _before = server.take_requests();
    for poll in 1..=100 {
        holder.clock.advance(R / 2);
        renewed(&mut holder.events).await;
        holder.clock.advance(R / 2);
        handled(&watched, FIRST_READS + poll).await;
    }
    let counted = server.take_requests();
    println!("100 renewals, and a poll behind each: {counted:?}");
    assert_eq!(counted, requests(100, 100, 0));
    drop(standby);
}

async fn an_unchanged_lease_is_polled_without_its_content(server: TestServer, store: S3Store) {
    server.put_by_hand(OBJECT, record_of_another(7));
    let (clock, watched) = (ManualClock::new(), FaultStore::new(store));
    let standby = stepped(watched.clone(), &clock).ephemeral_instance().start().await.unwrap();
    handled(&watched, FIRST_READS).await;
    let _before = server.take_requests();
    for poll in 1..=100 {
        clock.advance(R);
        handled(&watched, FIRST_READS + poll).await;
    }
    let counted = server.take_requests();
    println!("100 polls of an unchanged lease: {counted:?}");
    assert_eq!(counted, requests(100, 0, 100));
    drop(standby);
}

async fn a_thousand_leases_under_a_session_are_renewed_by_the_put_that_renews_one(
    server: TestServer,
    store: S3Store,
) {
    for count in [1, 1_000] {
        let (clock, watched) = (ManualClock::new(), FaultStore::new(store.clone()));
        let session = SessionManager::builder(watched.clone(), &format!("orders-{count}"))
            .timing(Timing::short(T, R).unwrap())
            .clock(Arc::new(clock.clone()))
            .ephemeral_instance()
            .start()
            .await
            .unwrap();
        // Of a lease that is free: one read, one write.
        let first = session.acquire("lease-0").await.unwrap();
        let _before = server.take_requests();
        let names: Vec<_> = (1..count).map(|number| format!("lease-{number}")).collect();
        let acquisitions = names.iter().map(|name| session.acquire(name));
        let tenures = futures_util::future::try_join_all(acquisitions).await.unwrap();
        let taking = server.take_requests();
        assert_eq!(taking, requests(count - 1, count - 1, 0));
        let answered = watched.faults().calls().len();
        for renewal in 1..=100 {
            clock.advance(R);
            handled(&watched, answered + renewal).await;
        }
        let counted = server.take_requests();
        println!("{count} under a session, for 100 R: {counted:?}, after {taking:?} to take them");
        assert_eq!(counted, requests(0, 100, 0));
        assert!(tenures.iter().chain([&first]).all(|tenure| tenure.fence().is_open()));
    }
}
