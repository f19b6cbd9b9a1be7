//! What keeps a manager from starting: each a typed error that says what to do, nothing written.

use crate::rig::{R, Rig, T};
use lease_core::{
    LeaseManager, LeaseStore as _, StoreErrorKind,
    auth::{Authenticator, ClusterSecret},
    fencing::Epoch,
    history::InstanceDirError,
    machine::{FirstStart, Predecessor, Role},
    record::{Label, LeaseRecord, SnapshotMark},
    runner::StartError,
    testing::{Fault, Op},
};
use std::time::Duration;
use tokio::time::sleep;

fn advice(error: &StartError) -> String {
    let text = error.to_string();
    assert!(text.len() > 20, "{text}");
    text
}

#[tokio::test(start_paused = true)]
async fn an_instance_directory_has_to_be_chosen_or_declined() {
    let rig = Rig::new();
    let bare = LeaseManager::builder(rig.store.clone(), "orders").start().await.unwrap_err();
    assert!(matches!(bare, StartError::NoInstanceDir));
    assert!(advice(&bare).contains("instance_dir"));
    for builder in [rig.builder().first_start(FirstStart::Immediate), rig.builder().reclaim(true)] {
        let error = builder.start().await.unwrap_err();
        assert!(matches!(error, StartError::ChoiceNeedsInstanceDir { .. }), "{error}");
    }
    assert_eq!(rig.memory.requests().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bad_cluster_name_is_refused() {
    let rig = Rig::new();
    for name in ["", "Orders", "a/b", "../x"] {
        let builder = LeaseManager::builder(rig.store.clone(), name).ephemeral_instance();
        let error = builder.start().await.unwrap_err();
        assert!(matches!(error, StartError::Name(_)), "{error}");
        assert!(advice(&error).contains("a-z"));
    }
    let error = rig.builder().instance_name("two\nlines").start().await.unwrap_err();
    assert!(matches!(error, StartError::InstanceName(_)), "{error}");
    assert_eq!(rig.memory.requests().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_process_on_one_instance_directory_is_refused() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("instance");
    let build = || LeaseManager::builder(rig.store.clone(), "orders").instance_dir(&path);
    let first = build().start().await.unwrap();
    let error = build().start().await.unwrap_err();
    assert!(matches!(error, StartError::InstanceDir(InstanceDirError::Busy { .. })), "{error}");
    first.stop().await;
    drop(first);
    build().start().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_secret_than_the_cluster_s_is_refused() {
    let rig = Rig::new();
    let ours = ClusterSecret::new(b"one secret of at least 32 bytes, surely").unwrap();
    let theirs = ClusterSecret::new(b"another secret of at least 32 bytes, too").unwrap();
    let lease = rig.builder().secret(theirs).start().await.unwrap();
    let tenure = lease.take_over().await.unwrap();
    let before = rig.record();
    let error = rig.builder().secret(ours).start().await.unwrap_err();
    assert!(matches!(error, StartError::ForeignSecret { .. }), "{error}");
    assert!(!advice(&error).contains("one secret"));
    assert_eq!(rig.record(), before);
    drop(tenure);
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_that_an_authentic_lease_names_is_in_the_history() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    let secret = || ClusterSecret::new(b"one secret of at least 32 bytes, surely").unwrap();
    let orders = "orders".parse().unwrap();
    let mark =
        SnapshotMark { epoch: Epoch::MIN, at: Label::new("2026-10-12T09:58:41.517Z").unwrap() };
    let text = br#"{"cluster":"orders","holder":"b","epoch":7,"seq":1,"ttl_seconds":30}"#;
    let mut record =
        LeaseRecord { last_snapshot: Some(mark.clone()), ..LeaseRecord::decode(text).unwrap() };
    Authenticator::new("orders".parse().unwrap(), Some(&secret())).seal(&mut record, true);
    let key = "orders/lease.json".parse().unwrap();
    rig.memory.create_if_absent(&key, record.encode()).await.unwrap();

    let lease = LeaseManager::builder(rig.memory.clone(), "orders")
        .instance_dir(scratch.path().join("instance"))
        .secret(secret())
        .clock(std::sync::Arc::new(rig.clock.clone()))
        .start()
        .await
        .unwrap();
    let dir = lease.instance_dir().unwrap();
    let mut tries = 0;
    while dir.history(&orders).newest_named_snapshot.is_none() {
        tries += 1;
        assert!(tries < 100, "it was never noted");
        sleep(R).await;
    }
    assert_eq!(dir.history(&orders).newest_named_snapshot, Some(mark));
    drop(dir);
    lease.stop().await;
    assert!(lease.instance_dir().is_none(), "the directory is free for the next");
    assert!(rig.other().await.instance_dir().is_none(), "this one has none");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_is_told_at_the_start() {
    let rig = Rig::new();
    rig.store.faults().next(Op::Read, Fault::Fail(StoreErrorKind::Unavailable));
    let error = rig.builder().start().await.unwrap_err();
    assert!(matches!(error, StartError::Store { .. }), "{error}");
    rig.store.faults().next(Op::Read, Fault::Hang);
    let error = rig.builder().start().await.unwrap_err();
    assert!(matches!(error, StartError::StoreSilent { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_first_start_of_a_new_cluster_is_active_at_once_and_so_is_every_restart() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let lease = LeaseManager::builder(rig.store.clone(), "orders")
            .instance_dir(scratch.path().join("instance"))
            .first_start(FirstStart::Immediate)
            .clock(std::sync::Arc::new(rig.clock.clone()))
            .start()
            .await
            .unwrap();
        let tenure = tokio::time::timeout(Duration::from_secs(1), lease.acquire()).await;
        let tenure = tenure.unwrap_or_else(|_| panic!("round {round} waits")).unwrap();
        tenure.release().await;
        lease.stop().await;
        drop(lease);
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_start_with_a_history_is_held_back_like_any_other() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    let build = || {
        LeaseManager::builder(rig.store.clone(), "orders")
            .timing(lease_core::Timing::short(T, R).unwrap())
            .instance_dir(scratch.path().join("instance"))
            .first_start(FirstStart::Immediate)
            .clock(std::sync::Arc::new(rig.clock.clone()))
    };
    let lease = build().start().await.unwrap();
    lease.acquire().await.unwrap().release().await;
    lease.stop().await;
    drop(lease);
    rig.memory.delete_by_hand(&"orders/lease.json".parse().unwrap());
    let lease = build().start().await.unwrap();
    let tenure = lease.take_over().await.unwrap();
    assert!(tenure.held_back_until().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_fence_stays_shut_if_the_history_cannot_be_written() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("instance");
    let lease = LeaseManager::builder(rig.store.clone(), "orders")
        .timing(lease_core::Timing::short(T, R).unwrap())
        .instance_dir(&path)
        .first_start(FirstStart::Immediate)
        .clock(std::sync::Arc::new(rig.clock.clone()))
        .start()
        .await
        .unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let tenure = lease.take_over().await.unwrap();
    let ended = tenure.confirm().await.unwrap_err();
    assert!(ended.to_string().contains("history"), "{ended}");
    assert!(!tenure.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_is_not_asked_only_watches() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    sleep(10 * T).await;
    assert_eq!(lease.status().borrow().role, Role::Standby);
    assert_eq!(rig.memory.requests().creates, 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_its_own_lease_back_at_once_only_if_it_was_told_to() {
    let rig = Rig::new();
    let scratch = tempfile::tempdir().unwrap();
    let build = |reclaim| {
        LeaseManager::builder(rig.store.clone(), "orders")
            .timing(lease_core::Timing::short(T, R).unwrap())
            .instance_dir(scratch.path().join("instance"))
            .first_start(FirstStart::Immediate)
            .reclaim(reclaim)
            .clock(std::sync::Arc::new(rig.clock.clone()))
    };
    let lease = build(false).start().await.unwrap();
    let mut last = lease.acquire().await.unwrap().epoch();
    // It ends without a release, as if it had been killed.
    crashed(lease).await;
    for (reclaim, at_once) in [(true, true), (false, false)] {
        let lease = build(reclaim).start().await.unwrap();
        let acquired = tokio::time::timeout(R / 2, lease.acquire()).await;
        assert_eq!(acquired.is_ok(), at_once, "reclaim: {reclaim}");
        if let Ok(tenure) = acquired {
            let tenure = tenure.unwrap();
            assert_eq!(*tenure.predecessor(), Predecessor::Reclaimed { epoch: last });
            assert!(tenure.epoch() > last);
            last = tenure.epoch();
        }
        crashed(lease).await;
    }
}

/// Drops the manager and waits until its driver has let go of the instance directory.
async fn crashed(lease: LeaseManager) {
    let mut status = lease.status();
    drop(lease);
    while status.changed().await.is_ok() {}
}
