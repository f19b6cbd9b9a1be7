//! What goes over the wire, counted by the server. The clock is one that only the test moves, so that
//! each renewal and each poll is one that the machine wanted, and none is one that an overloaded host
//! made it repeat.

use crate::{
    OBJECT,
    rig::{R, Stepped, handled, record_of_another, renewed, server_elsewhere, stepped},
};
use lease_core::testing::{FaultStore, ManualClock};
use lease_s3::{
    S3Store,
    testing::{Requests, TestServer},
};
use libtest_mimic::{Failed, Trial};
use std::time::Duration;

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
