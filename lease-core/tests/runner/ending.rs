//! Every way in which a tenure can end against its holder's will.

use crate::rig::{R, Rig, T, WINDOW, end_of, ends_left, role_becomes};
use lease_core::{
    StoreErrorKind, Timing,
    fencing::{Clock as _, ShutReason},
    machine::{EndReason, Role},
    runner::RunError,
    testing::{Fault, FaultStore, MemoryStore, Op},
};
use std::{future::pending, time::Duration};
use tokio::time::{Instant, sleep};

#[expect(clippy::disallowed_methods, reason = "the tests' time is tokio's, and paused")]
fn now() -> Instant {
    Instant::now()
}

/// The store starts to do this for every write once the tenure is active; the tenure must end at
/// the deadline of the last renewal that succeeded, not later.
async fn ends_by_the_deadline(fault: Fault) {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    sleep(R / 2).await;
    rig.store.faults().always_any(&fault);
    let deadline = lease.status().borrow().deadline.unwrap();
    let left = rig.clock.monotonic().until(deadline);
    let began = now();
    tenure.lost().cancelled().await;
    let (took, grain) = (now() - began, Duration::from_millis(2));
    assert!(took + grain >= left, "it ended {:?} early", left - took);
    assert!(took <= left + grain, "it ended {:?} late", took - left);
    assert_eq!(tenure.fence().check().unwrap_err().reason, ShutReason::Closed);
    assert_eq!(end_of(&mut events, tenure.epoch()).await, EndReason::Expired);
    assert_eq!(tenure.ended().await, EndReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn case_22_a_hanging_store_ends_it_by_the_deadline() {
    ends_by_the_deadline(Fault::Hang).await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_store_ends_it_by_the_deadline() {
    ends_by_the_deadline(Fault::Panic).await;
}

#[tokio::test(start_paused = true)]
async fn case_23_a_failing_store_ends_it_by_the_deadline() {
    ends_by_the_deadline(Fault::Fail(StoreErrorKind::Unavailable)).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_loses_every_answer_ends_it_by_the_deadline() {
    ends_by_the_deadline(Fault::Fail(StoreErrorKind::InDoubt)).await;
}

#[tokio::test(start_paused = true)]
async fn a_passing_fault_ends_nothing() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    rig.store.faults().always_any(&Fault::Fail(StoreErrorKind::Unavailable));
    sleep(WINDOW / 2).await;
    rig.store.faults().clear();
    sleep(10 * T).await;
    tenure.fence().check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_the_tenure_shuts_its_fence_and_stops_the_renewals() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let (fence, lost) = (tenure.fence(), tenure.lost());
    drop(tenure);
    assert_eq!(fence.check().unwrap_err().reason, ShutReason::Closed);
    assert!(lost.is_cancelled());
    role_becomes(&lease, Role::Standby).await;
    let sent = rig.replaces();
    sleep(10 * T).await;
    assert_eq!(rig.replaces(), sent);
    assert!(rig.record().holder.is_some(), "it lapses; nothing releases it");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_manager_ends_everything() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    drop(lease);
    tenure.lost().cancelled().await;
    assert_eq!(tenure.ended().await, EndReason::Dropped);
    assert!(!tenure.fence().is_open());
    let sent = rig.store.faults().calls().len();
    sleep(10 * T).await;
    assert_eq!(rig.store.faults().calls().len(), sent, "a task was left behind");
    ends_left(events).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_work_ends_the_tenure_without_a_release() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    let (epoch, fence) = (tenure.epoch(), tenure.fence());
    let ran = tenure.run(async |_| -> Result<(), ()> { panic!("out of cheese") }).await;
    match ran.unwrap_err() {
        RunError::Panicked { message, .. } => assert_eq!(message, "out of cheese"),
        other => panic!("{other}"),
    }
    assert!(!fence.is_open());
    assert_eq!(end_of(&mut events, epoch).await, EndReason::WorkFailed);
    assert!(rig.record().holder.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_work_is_its_own_and_the_lease_is_released() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let ran = tenure.run(async |_| Err::<(), _>("no stock")).await;
    assert!(matches!(ran, Err(RunError::Work("no stock"))));
    assert!(rig.record().is_released());
}

#[tokio::test(start_paused = true)]
async fn work_hears_of_a_loss_and_its_result_is_not_lost() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let running = tokio::spawn(tenure.run(async |lost| {
        lost.cancelled().await;
        Ok::<_, ()>("half")
    }));
    sleep(R / 2).await;
    rig.memory.delete_by_hand(&"orders/lease.json".parse().unwrap());
    match running.await.unwrap().unwrap_err() {
        RunError::Lost { ended, work } => {
            assert_eq!(ended.reason, EndReason::Deleted);
            assert_eq!(work, Ok("half"));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_a_loss_is_dropped_after_its_budget() {
    let rig = Rig::new();
    let lease = rig.builder().step_down_budget(R).start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let running = tokio::spawn(tenure.run(async |_| pending::<Result<(), ()>>().await));
    rig.memory.delete_by_hand(&"orders/lease.json".parse().unwrap());
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::Overran { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn case_25_a_suspend_is_seen_by_the_first_check_and_ends_it_once() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    sleep(R / 2).await;
    let sent = rig.replaces();
    rig.clock.suspend(Duration::from_secs(3600));
    assert!(tenure.fence().check().is_err(), "before any timer fired");
    assert_eq!(end_of(&mut events, tenure.epoch()).await, EndReason::Suspended);
    sleep(T).await;
    assert_eq!(rig.replaces(), sent, "written under the old epoch");
    drop(lease);
    assert_eq!(ends_left(events).await, 0, "ended twice");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_was_off_for_a_moment_does_not_leave_a_lease_without_a_fence() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    sleep(R / 2).await;
    rig.clock.jump_wall(3600);
    assert!(tenure.fence().check().is_err(), "before any timer fired");
    rig.clock.jump_wall(-3600);
    let ended = tokio::time::timeout(R * 2, end_of(&mut events, tenure.epoch())).await;
    assert_eq!(ended, Ok(EndReason::Suspended), "renewed under a fence that is shut");
}

/// Nothing is due for long, and nobody asks the fence.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_set_forward_is_noticed_in_a_nap() {
    let (rig, renew) = (Rig::new(), Duration::from_secs(10));
    let timing = Timing::short(renew * 3, renew).unwrap();
    let lease = rig.builder().timing(timing).start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    sleep(renew / 100).await;
    rig.clock.jump_wall(3600);
    let told = tokio::time::timeout(renew / 2, tenure.ended()).await;
    assert_eq!(told, Ok(EndReason::Suspended), "only the next renewal would have noticed");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_that_is_asked_for_after_the_end_is_at_its_end() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut before = lease.events();
    lease.stop().await;
    while before.next().await.is_some() {}
    assert_eq!(lease.events().next().await, None);
}

#[test]
fn the_end_of_the_runtime_shuts_the_fence() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (lease, tenure) = runtime.block_on(async {
        let lease = lease_core::LeaseManager::builder(MemoryStore::new(), "orders")
            .timing(Timing::short(Duration::from_millis(50), Duration::from_millis(20)).unwrap())
            .ephemeral_instance()
            .start()
            .await
            .unwrap();
        let tenure = lease.acquire().await.unwrap();
        (lease, tenure)
    });
    drop(runtime);
    assert_eq!(tenure.fence().check().unwrap_err().reason, ShutReason::Closed);
    assert_eq!(tenure.end_reason(), Some(EndReason::Dropped));
    drop(lease);
}

/// The one runtime of the service is blocked, and the renewals go on all the same.
#[test]
fn a_thread_of_its_own_renews_while_the_runtime_is_blocked() {
    let store = FaultStore::new(MemoryStore::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let lease = lease_core::LeaseManager::builder(store.clone(), "orders")
            .timing(Timing::short(Duration::from_millis(400), Duration::from_millis(100)).unwrap())
            .ephemeral_instance()
            .dedicated_thread()
            .start()
            .await
            .unwrap();
        let tenure = lease.acquire().await.unwrap();
        let sent = store.faults().count(Op::Replace);
        // Blocks this thread, and with it the runtime, for longer than the ttl.
        block_on_here(store.faults().wait_for_calls_of(Op::Replace, sent + 8));
        tenure.fence().check().unwrap();
        assert_eq!(tenure.release().await, EndReason::Released);
    });
}

/// Waits without any runtime: the thread is parked.
fn block_on_here(future: impl Future<Output = ()>) {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    while future.as_mut().poll(&mut context).is_pending() {
        std::thread::park();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_at_or_past_the_deadline() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    rig.store.faults().always(Op::Replace, Fault::Fail(StoreErrorKind::InDoubt));
    tenure.lost().cancelled().await;
    let sent = rig.replaces();
    sleep(R).await;
    assert_eq!(rig.replaces(), sent);
}
