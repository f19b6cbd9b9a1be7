//! Many named leases under one session, on tokio.

use crate::rig::{R, T, WINDOW};
use lease_core::{
    Timing,
    fencing::Epoch,
    machine::{EndReason, Role},
    runner::{NamedAcquireError, NamedRunError, NamedTenure, SessionBuilder, SessionManager},
    session::{DenyReason, LeaseEndReason, NamedSeen, WishError},
    testing::{Fault, FaultStore, Hold, MemoryStore, Op, TokioClock},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

struct Rig {
    memory: MemoryStore,
    clock: TokioClock,
}

impl Rig {
    fn new() -> Self {
        Self { memory: MemoryStore::new(), clock: TokioClock::new() }
    }

    fn builder(&self, store: &FaultStore<MemoryStore>) -> SessionBuilder {
        SessionManager::builder(store.clone(), "orders")
            .timing(Timing::short(T, R).unwrap())
            .ephemeral_instance()
            .clock(Arc::new(self.clock.clone()))
    }

    fn store(&self) -> FaultStore<MemoryStore> {
        FaultStore::new(self.memory.clone())
    }

    async fn session(&self) -> SessionManager {
        self.builder(&self.store()).start().await.unwrap()
    }
}

async fn acquire_all(session: &SessionManager, count: usize) -> Vec<NamedTenure> {
    let names: Vec<_> = (0..count).map(|number| format!("shard-{number}")).collect();
    let acquisitions = names.iter().map(|name| session.acquire(name));
    futures_util::future::join_all(acquisitions).await.into_iter().map(Result::unwrap).collect()
}

#[expect(clippy::disallowed_methods, reason = "time is paused: it is a test's own")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_leases_are_renewed_by_one_write() {
    let rig = Rig::new();
    let store = rig.store();
    let session = rig.builder(&store).start().await.unwrap();
    let tenures = acquire_all(&session, 1_000).await;
    let (reads, writes) = (store.faults().count(Op::Read), store.faults().count(Op::Replace));
    sleep(R * 100).await;
    assert!(tenures.iter().all(|tenure| tenure.fence().check().is_ok()));
    assert_eq!(store.faults().count(Op::Read), reads);
    let renewals = store.faults().count(Op::Replace) - writes;
    assert!((99..=101).contains(&renewals), "{renewals}");
    session.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_free_lease_costs_a_read_and_a_write() {
    let rig = Rig::new();
    let store = rig.store();
    let session = rig.builder(&store).start().await.unwrap();
    session.acquire("first").await.unwrap().release().await;
    let count = || {
        let faults = store.faults();
        (faults.count(Op::Read), faults.count(Op::Create), faults.count(Op::Replace))
    };
    let before = count();
    let tenure = session.acquire("second").await.unwrap();
    assert_eq!(count(), (before.0 + 1, before.1 + 1, before.2));
    assert_eq!(tenure.release().await, LeaseEndReason::Released);
    assert_eq!(count(), (before.0 + 1, before.1 + 1, before.2 + 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_session_held_is_taken_over_within_the_bound() {
    let rig = Rig::new();
    let (first, second) = (rig.session().await, rig.session().await);
    let tenures = acquire_all(&first, 200).await;
    let epochs: Vec<Epoch> = tenures.iter().map(NamedTenure::epoch).collect();
    let waiting = tokio::spawn(async move {
        let taken = acquire_all(&second, 200).await;
        (second, taken, now())
    });
    sleep(R * 5).await;
    let died = now();
    drop(first); // nothing renews any more; nothing is released
    sleep(Duration::from_millis(1)).await; // the driver has its turn
    assert!(tenures.iter().all(|tenure| tenure.fence().check().is_err()));
    let (second, taken, at) = waiting.await.unwrap();
    let took = at - died;
    assert!(took > T - R && took <= T + R + R / 10 + Duration::from_millis(10), "{took:?}");
    for (old, new) in epochs.iter().zip(&taken) {
        assert!(*old < new.epoch() && new.fence().check().is_ok());
    }
    assert_eq!(tenures[0].end_reason(), Some(LeaseEndReason::Session(EndReason::Dropped)));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_to_who_waits_within_r() {
    let rig = Rig::new();
    let (first, second) = (rig.session().await, rig.session().await);
    let tenure = first.acquire("job").await.unwrap();
    let epoch = tenure.epoch();
    let waiting = tokio::spawn(async move { (second.acquire("job").await.unwrap(), second) });
    sleep(R * 3).await;
    let released = now();
    assert_eq!(tenure.release().await, LeaseEndReason::Released);
    let (taken, _second) = waiting.await.unwrap();
    assert!(now() - released <= R + R / 10, "{:?}", now() - released);
    assert!(taken.epoch() > epoch);
}

#[tokio::test(start_paused = true)]
async fn a_tenure_that_is_dropped_is_shut_at_once_and_freed_a_ttl_later() {
    let rig = Rig::new();
    let (first, second) = (rig.session().await, rig.session().await);
    let tenure = first.acquire("job").await.unwrap();
    let fence = tenure.fence();
    let dropped = now();
    drop(tenure);
    assert!(fence.check().is_err());
    let _taken = second.acquire("job").await.unwrap();
    let took = now() - dropped;
    assert!(took >= T && took <= T + R + R / 10, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_future_of_acquire_that_is_dropped_wants_nothing() {
    let rig = Rig::new();
    let (first, second) = (rig.session().await, rig.session().await);
    let tenure = first.acquire("job").await.unwrap();
    assert!(timeout(R, second.acquire("job")).await.is_err());
    tenure.release().await;
    sleep(T).await;
    assert_eq!(second.status().borrow().leases, 0, "{:?}", second.status().borrow());
    // And it can be asked for again.
    second.acquire("job").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_frees_everything_by_one_write() {
    let rig = Rig::new();
    let store = rig.store();
    let first = Arc::new(rig.builder(&store).start().await.unwrap());
    let second = rig.session().await;
    let tenures = acquire_all(&first, 50).await;
    let work: Vec<_> = tenures
        .into_iter()
        .map(|tenure| {
            tokio::spawn(tenure.run(async |lost| {
                lost.cancelled().await;
                Ok::<_, ()>(())
            }))
        })
        .collect();
    sleep(R * 2).await;
    let stopped = now();
    first.stop().await;
    for work in work {
        work.await.unwrap().unwrap();
    }
    assert_eq!(now(), stopped, "nothing was waited for");
    let _taken = acquire_all(&second, 50).await;
    assert!(now() - stopped <= R, "{:?}", now() - stopped);
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_ends_every_tenure_at_its_deadline() {
    let rig = Rig::new();
    let store = rig.store();
    let session = rig.builder(&store).start().await.unwrap();
    let tenures = acquire_all(&session, 20).await;
    sleep(R / 2).await;
    store.faults().always_any(&Fault::Hang);
    let lost = tenures[7].lost();
    let before = now();
    lost.cancelled().await;
    assert!(now() - before <= WINDOW, "{:?}", now() - before);
    for tenure in &tenures {
        assert!(tenure.fence().check().is_err());
        assert_eq!(tenure.ended().await, LeaseEndReason::Session(EndReason::Expired));
    }
    // The session begins anew by itself once the store answers, and the names are free to be taken.
    store.faults().clear();
    let again = session.acquire("shard-7").await.unwrap();
    assert!(again.epoch() > tenures[7].epoch());
}

#[tokio::test(start_paused = true)]
async fn bad_wishes_are_refused_by_type() {
    let rig = Rig::new();
    let session = rig.builder(&rig.store()).max_leases(10).start().await.unwrap();
    for name in ["", "../x", "A", "a//b", "x\0", "-"] {
        let refused = session.acquire(name).await.unwrap_err();
        assert!(matches!(refused, NamedAcquireError::Name(_)), "{refused}");
    }
    let _held = session.acquire("job").await.unwrap();
    let refused = session.acquire("job").await.unwrap_err();
    let held = NamedAcquireError::Refused(WishError::AlreadyHeld {
        lease: session.key("job").unwrap(),
        epoch: _held.epoch(),
    });
    assert_eq!(refused, held);
    let other = rig.session().await;
    let denied = other.try_acquire("job").await;
    // A session that has not begun tries nothing; one that has is told who holds it.
    let denied = match denied {
        Err(NamedAcquireError::Refused(WishError::NotLive { .. })) => {
            other.status().wait_for(|status| status.role == Role::Active).await.unwrap();
            other.try_acquire("job").await
        }
        denied => denied,
    };
    assert!(matches!(
        denied.unwrap_err(),
        NamedAcquireError::Denied { reason: DenyReason::Held { .. }, .. }
    ));
    session.stop().await;
    assert_eq!(session.acquire("more").await.unwrap_err(), NamedAcquireError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_wishes_at_once_are_bounded() {
    let rig = Rig::new();
    let store = rig.store();
    let session = rig.builder(&store).max_leases(500).max_in_flight(8).start().await.unwrap();
    let first = session.acquire("n0").await.unwrap();
    let (faults, hold) = (store.faults(), Hold::new());
    let before = faults.count(Op::Read);
    faults.always(Op::Read, Fault::Hold(hold.clone()));
    let names: Vec<_> = (1..100_000).map(|number| format!("n{number}")).collect();
    let asked = futures_util::future::join_all(names.iter().map(|name| session.acquire(name)));
    let (told, ()) = tokio::join!(asked, async {
        faults.wait_for_calls_of(Op::Read, before + 8).await;
        // Time goes on by itself only once nobody has anything to do.
        sleep(Duration::from_millis(1)).await;
        assert_eq!(faults.count(Op::Read), before + 8);
        assert_eq!(session.status().borrow().in_flight, 8);
        faults.clear();
        hold.release();
    });
    let (held, refused): (Vec<_>, Vec<_>) = told.into_iter().partition(Result::is_ok);
    assert_eq!((held.len(), refused.len()), (499, 99_500));
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, NamedAcquireError::Refused(WishError::Full { .. })), "{error}");
    }
    assert!(first.fence().is_open());
}

#[tokio::test(start_paused = true)]
async fn what_stands_under_a_name_is_told() {
    let rig = Rig::new();
    let (first, second) = (rig.session().await, rig.session().await);
    let mut watch = second.watch("job").await.unwrap();
    assert_eq!(watch.next().await, Some(NamedSeen::Missing));
    let tenure = first.acquire("job").await.unwrap();
    let held = watch.next().await;
    assert!(matches!(&held, Some(NamedSeen::Held { epoch, .. }) if *epoch == tenure.epoch()));
    let epoch = tenure.epoch();
    tenure.release().await;
    assert_eq!(watch.next().await, Some(NamedSeen::Released { epoch }));
    drop(watch);
    sleep(R * 3).await;
    assert_eq!(second.status().borrow().leases, 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_or_overruns_frees_its_lease_a_ttl_later() {
    let rig = Rig::new();
    let session = rig.builder(&rig.store()).step_down_budget(R).start().await.unwrap();
    let other = rig.session().await;
    let tenure = session.acquire("job").await.unwrap();
    let error = tenure
        .run(async |_| if true { panic!("on purpose") } else { Ok::<(), ()>(()) })
        .await
        .unwrap_err();
    assert!(
        matches!(error, NamedRunError::Panicked { ref message, .. } if message == "on purpose")
    );
    let panicked = now();
    other.acquire("job").await.unwrap();
    assert!(now() - panicked >= T);
}
