//! Acquiring, releasing, and what lies between.

use crate::rig::{R, Rig, T, end_of, role_becomes};
use lease_core::{
    auth::Verdict,
    fencing::Epoch,
    machine::{AbandonReason, EndReason, EpochOrigin, Event, Predecessor, Role},
    record::{Label, SnapshotMark},
    runner::{AcquireError, Delivery, EpochFloor, UntrustedPredecessor},
    testing::{Fault, Op},
};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::time::{Instant, sleep};

#[expect(clippy::disallowed_methods, reason = "the tests' time is tokio's, and paused")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_created_at_once_and_held_back() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let started = now();
    let tenure = lease.take_over().await.unwrap();
    assert!(now() - started < R, "the create waits for nothing");
    assert_eq!(*tenure.predecessor(), Predecessor::Missing);
    assert!(tenure.held_back_until().is_some());
    tenure.confirm().await.unwrap();
    assert!(now() - started >= T, "the fence opened before the hold-back was over");
    tenure.fence().check().unwrap();
    assert_eq!(rig.record().epoch, tenure.epoch());
}

#[tokio::test(start_paused = true)]
async fn a_release_hands_over_within_one_renew_interval() {
    let rig = Rig::new();
    let first = rig.builder().start().await.unwrap();
    let second = rig.other().await;
    let tenure = first.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { (second.acquire().await.unwrap(), second) });
    sleep(2 * R).await;
    let (released, old) = (now(), tenure.epoch());
    assert_eq!(tenure.release().await, EndReason::Released);
    let (next, second) = waiting.await.unwrap();
    assert!(now() - released <= R + R / 10, "took {:?}", now() - released);
    assert!(next.epoch() > old);
    assert_eq!(*next.predecessor(), Predecessor::Released { epoch: old });
    drop((next, second, first));
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_succeeded_within_the_bound() {
    let rig = Rig::new();
    let first = rig.builder().start().await.unwrap();
    let second = rig.other().await;
    let tenure = first.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { (second.acquire().await.unwrap(), second) });
    sleep(2 * R).await;
    // Dropped at once: it lapses, as if the process had died.
    let died = now();
    drop(first);
    let (next, _second) = waiting.await.unwrap();
    assert!(now() - died <= T + R + R / 10, "took {:?}", now() - died);
    assert!(next.epoch() > tenure.epoch());
    assert!(!tenure.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn work_is_told_to_stop_and_the_lease_released_only_after_it_has() {
    let rig = Rig::new();
    let lease = Arc::new(rig.builder().start().await.unwrap());
    let tenure = lease.acquire().await.unwrap();
    let (fence, has_ended) = (tenure.fence(), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&has_ended);
    let running = tokio::spawn(tenure.run(async move |lost| {
        lost.cancelled().await;
        // It takes its time, and still holds the lease meanwhile.
        sleep(5 * R).await;
        fence.check().unwrap();
        ended.store(true, Ordering::SeqCst);
        Ok::<_, ()>("done")
    }));
    sleep(R).await;
    let stopping = tokio::spawn({
        let lease = Arc::clone(&lease);
        async move { lease.stop().await }
    });
    sleep(4 * R).await;
    assert!(!has_ended.load(Ordering::SeqCst));
    assert!(rig.record().holder.is_some(), "released while the work still ran");
    let sent = rig.replaces();
    sleep(R / 2).await;
    assert_eq!(running.await.unwrap().unwrap(), "done");
    stopping.await.unwrap();
    assert!(rig.replaces() > sent, "not renewed while the work came to its end");
    assert!(rig.record().is_released());
    assert_eq!(lease.acquire().await.unwrap_err(), AcquireError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_second_acquire_waits_for_the_first_tenure_to_end() {
    let rig = Rig::new();
    let lease = Arc::new(rig.builder().keep_out_after_release(false).start().await.unwrap());
    let tenure = lease.acquire().await.unwrap();
    let first = tenure.epoch();
    let second = tokio::spawn({
        let lease = Arc::clone(&lease);
        async move { lease.acquire().await.unwrap().epoch() }
    });
    sleep(3 * T).await;
    assert!(!second.is_finished());
    tenure.release().await;
    assert!(second.await.unwrap() > first);
}

#[tokio::test(start_paused = true)]
async fn whoever_released_keeps_out_for_two_renew_intervals() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    lease.acquire().await.unwrap().release().await;
    let released = now();
    let tenure = lease.acquire().await.unwrap();
    assert!(now() - released >= 2 * R);
    drop(tenure);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_given_up_leaves_nothing_held() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    // Given up while it is held back: nothing may be released then, it lapses.
    let given_up = tokio::time::timeout(T / 2, lease.acquire()).await;
    assert!(given_up.is_err());
    role_becomes(&lease, Role::Standby).await;
    let sent = rig.replaces();
    sleep(10 * T).await;
    assert_eq!(rig.replaces(), sent, "something still renews");
    assert!(rig.record().holder.is_some(), "released while it was held back");
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_lands_after_it_was_given_up_is_given_back() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    lease.acquire().await.unwrap().release().await;
    let hold = lease_core::testing::Hold::new();
    rig.store.faults().next(Op::Replace, Fault::Hold(hold.clone()));
    let mut events = lease.events();
    let given_up = tokio::time::timeout(2 * R + R / 2, lease.acquire()).await;
    assert!(given_up.is_err());
    let before = rig.record().epoch;
    hold.release();
    sleep(R / 4).await;
    assert!(rig.record().epoch > before, "the acquisition did not land");
    assert_eq!(end_of(&mut events, rig.record().epoch).await, EndReason::Released);
    assert!(rig.record().is_released(), "nobody wants it, and it is held");
}

#[tokio::test(start_paused = true)]
async fn run_while_active_can_be_spawned_and_runs_once_per_tenure() {
    let rig = Rig::new();
    let lease = Arc::new(rig.builder().keep_out_after_release(false).start().await.unwrap());
    let runs = Arc::new(AtomicUsize::new(0));
    let task = tokio::spawn({
        let (lease, runs) = (Arc::clone(&lease), Arc::clone(&runs));
        async move {
            let work = |tenure: Arc<lease_core::Tenure>| {
                let runs = Arc::clone(&runs);
                async move {
                    if runs.fetch_add(1, Ordering::SeqCst) == 2 {
                        tenure.lost().cancelled().await;
                    }
                }
            };
            lease.run_while_active(work).await
        }
    });
    let mut status = lease.status();
    while runs.load(Ordering::SeqCst) < 3 {
        status.changed().await.unwrap();
    }
    lease.stop().await;
    task.await.unwrap().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert!(rig.record().is_released());
}

#[tokio::test(start_paused = true)]
async fn work_that_overruns_its_budget_gets_no_release() {
    let rig = Rig::new();
    let lease = Arc::new(rig.builder().step_down_budget(R).start().await.unwrap());
    let tenure = lease.acquire().await.unwrap();
    let fence = tenure.fence();
    let running = tokio::spawn(tenure.run(async |_| pending::<Result<(), ()>>().await));
    sleep(R).await;
    lease.stop().await;
    let error = running.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("did not stop within its budget"), "{error}");
    assert!(rig.record().holder.is_some(), "released although the work may still run");
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_tenure_held_by_hand_past_the_budget_of_a_stop_is_not_released() {
    let rig = Rig::new();
    let lease = rig.builder().step_down_budget(R).start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    lease.stop().await;
    assert!(!tenure.fence().is_open());
    assert!(rig.record().holder.is_some(), "released while somebody still held the tenure");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_from_garbage_is_abandoned_unless_it_is_accepted() {
    let rig = Rig::new();
    let key = "orders/lease.json".parse().unwrap();
    rig.memory.put_by_hand(&key, "{garbage");
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    // What it released after giving up is an ordinary record without a secret: the next one works.
    let tenure = lease.acquire().await.unwrap();
    let abandoned = loop {
        if let Delivery::Event(Event::Ended { epoch, reason }) = events.next().await.unwrap() {
            break (epoch, reason);
        }
    };
    assert!(abandoned.0 < tenure.epoch());
    let untrusted = AbandonReason::UntrustedPredecessor;
    assert_eq!(abandoned.1, EndReason::Abandoned(untrusted));
    drop((tenure, lease));

    rig.memory.put_by_hand(&key, "{garbage");
    let accepting = rig.builder().untrusted_predecessor(UntrustedPredecessor::Accept);
    let lease = accepting.start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    assert!(!tenure.predecessor().is_trusted());
    tenure.fence().check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_epoch_floor_is_asked_and_a_failing_one_holds_the_acquisition_up() {
    let rig = Rig::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let floor: EpochFloor = {
        let asked = Arc::clone(&asked);
        Arc::new(move || {
            let nth = asked.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                match nth {
                    0 => Err("the snapshots cannot be listed".into()),
                    1 => pending().await,
                    2 => panic!("listing panics"),
                    _ => Ok(Epoch::new(15)),
                }
            })
        })
    };
    let lease = rig.builder().epochs(EpochOrigin::Counter).epoch_floor(floor, R).start().await;
    let lease = lease.unwrap();
    let tenure = lease.take_over().await.unwrap();
    assert_eq!(tenure.epoch().as_u64(), 16);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_named_is_in_the_lease_at_once_and_inherited() {
    let rig = Rig::new();
    let first = rig.builder().start().await.unwrap();
    let second = rig.other().await;
    let tenure = first.acquire().await.unwrap();
    assert!(!tenure.inherited().knew_the_cluster);
    let mark =
        SnapshotMark { epoch: tenure.epoch(), at: Label::new("2026-10-12T09:58:41.517Z").unwrap() };
    tenure.name_snapshot(mark.clone());
    sleep(R / 10).await;
    assert_eq!(rig.record().last_snapshot, Some(mark.clone()));
    let epoch = tenure.epoch();
    tenure.release().await;

    let tenure = second.take_over().await.unwrap();
    let inherited = tenure.inherited();
    assert_eq!((inherited.verdict, inherited.epoch), (Some(Verdict::Unsigned), Some(epoch)));
    assert_eq!(inherited.last_snapshot, Some(mark.clone()));
    assert_eq!(rig.record().last_snapshot, Some(mark), "handed on");
    // What was restored is in the lease before it is confirmed.
    let restored = SnapshotMark { epoch, at: Label::new("2026-10-12T09:50:00.000Z").unwrap() };
    tenure.name_snapshot(restored.clone());
    tenure.confirm().await.unwrap();
    sleep(R / 10).await;
    assert_eq!(rig.record().last_snapshot, Some(restored));
}
