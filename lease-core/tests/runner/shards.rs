//! A set of shards over several processes, in paused time.

use crate::rig::{R, T};
use lease_core::{
    LeaseStore, StoreErrorKind, Timing,
    key::LeaseName,
    runner::{HeldShard, SessionManager, ShardSet, ShardStatus},
    testing::{Fault, FaultStore, MemoryStore, Op, TokioClock},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

const SHARDS: usize = 64;

/// Every shard that is worked on, and since when; it is worked on by one at a time.
#[derive(Clone, Default)]
struct Floor(Arc<Mutex<BTreeMap<LeaseName, HeldShard>>>);

impl Floor {
    async fn work(self, shard: HeldShard, clean_up: Duration) {
        let before = self.0.lock().unwrap().insert(shard.name().clone(), shard.clone());
        if let Some(before) = before {
            assert!(before.fence().check().is_err(), "{} is held twice", shard.name());
            assert!(before.epoch() < shard.epoch());
        }
        shard.stop().cancelled().await;
        // What was under way is finished: the fence is still open if the shard is to be given back.
        sleep(clean_up).await;
        let mut floor = self.0.lock().unwrap();
        if floor.get(shard.name()).is_some_and(|here| here.epoch() == shard.epoch()) {
            floor.remove(shard.name());
        }
    }
}

struct Rig {
    memory: MemoryStore,
    store: FaultStore<MemoryStore>,
    clock: TokioClock,
    floor: Floor,
    clean_up: Duration,
}

struct Process {
    session: Arc<SessionManager>,
    status: watch::Receiver<ShardStatus>,
    running: JoinHandle<()>,
}

impl Rig {
    fn new() -> Self {
        let memory = MemoryStore::new();
        Self {
            store: FaultStore::new(memory.clone()),
            memory,
            clock: TokioClock::new(),
            floor: Floor::default(),
            clean_up: Duration::ZERO,
        }
    }

    async fn process(&self) -> Process {
        self.process_on(self.store.clone()).await
    }

    async fn process_on(&self, store: impl LeaseStore) -> Process {
        let builder = SessionManager::builder(store, "orders")
            .timing(Timing::short(T, R).unwrap())
            .ephemeral_instance()
            .clock(Arc::new(self.clock.clone()));
        let session = Arc::new(builder.start().await.unwrap());
        let set = ShardSet::new("billing", (0..SHARDS).map(|at| format!("{at:02}"))).unwrap();
        let status = set.status();
        let (floor, clean_up) = (self.floor.clone(), self.clean_up);
        let running = tokio::spawn({
            let session = Arc::clone(&session);
            async move { set.run(&session, |shard| floor.clone().work(shard, clean_up)).await }
        });
        Process { session, status, running }
    }

    fn requests(&self) -> usize {
        let faults = self.store.faults();
        [Op::Read, Op::Create, Op::Replace].into_iter().map(|op| faults.count(op)).sum()
    }
}

impl Process {
    fn held(&self) -> usize {
        self.status.borrow().held.len()
    }

    /// As `kill -9`: nothing is released, nothing is written any more.
    fn kill(self) {
        self.running.abort();
        drop(self);
    }
}

fn is_balanced(processes: &[Process]) -> bool {
    let held: Vec<_> = processes.iter().map(Process::held).collect();
    let spread = held.iter().max().unwrap() - held.iter().min().unwrap();
    held.iter().sum::<usize>() == SHARDS
        && spread <= 1
        && processes.iter().all(|process| process.status.borrow().is_settled)
}

#[expect(clippy::disallowed_methods, reason = "time is paused: it is a test's own")]
fn now() -> Instant {
    Instant::now()
}

/// Waits for the balance, and tells how long it took.
async fn balance(processes: &[Process], limit: Duration) -> Duration {
    let begun = now();
    let balanced = async {
        while !is_balanced(processes) {
            sleep(R / 20).await;
        }
    };
    let held = || processes.iter().map(Process::held).collect::<Vec<_>>();
    let is_in_time = timeout(limit, balanced).await.is_ok();
    assert!(is_in_time, "{:?} after {limit:?}", held());
    now() - begun
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_has_them_all_and_a_newcomer_gets_its_share() {
    let rig = Rig::new();
    let mut processes = vec![rig.process().await];
    balance(&processes, R * 2).await;
    for _ in 0..4 {
        processes.push(rig.process().await);
        balance(&processes, T + R * 3).await;
    }
    let held: Vec<_> = processes.iter().map(Process::held).collect();
    assert_eq!(held.iter().sum::<usize>(), SHARDS);
    assert_eq!(held.iter().max(), Some(&13));
}

#[tokio::test(start_paused = true)]
async fn a_balanced_set_costs_what_is_said_whatever_the_number_of_shards() {
    let rig = Rig::new();
    let mut processes = vec![rig.process().await];
    for _ in 0..2 {
        processes.push(rig.process().await);
    }
    balance(&processes, T + R * 3).await;
    sleep(R * 3).await;
    let before = rig.requests();
    sleep(R * 100).await;
    let per_renewal = (rig.requests() - before) as f64 / 100.0;
    // M(2M + 1), and the looks of one member at one slot each above that.
    println!("{per_renewal} requests per R for {SHARDS} shards of 3 processes");
    assert!(per_renewal <= 3.0 * 7.0 * 1.1, "{per_renewal}");
    assert!(is_balanced(&processes));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_held_is_taken_over() {
    let rig = Rig::new();
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(rig.process().await);
    }
    balance(&processes, T + R * 3).await;
    // In the lowest slot, in the middle, in the highest: whichever it is.
    for _ in 0..3 {
        let kept: Vec<_> =
            processes[1..].iter().map(|it| it.status.borrow().held.clone()).collect();
        processes.remove(0).kill();
        sleep(R / 2).await;
        let took = balance_after_loss(&processes).await;
        println!("{} left, balanced after {took:?}", processes.len());
        for (process, kept) in processes.iter().zip(kept) {
            assert!(process.status.borrow().held.is_superset(&kept), "it gave back for no reason");
        }
    }
}

async fn balance_after_loss(processes: &[Process]) -> Duration {
    balance(processes, T + R * 3 - R / 2).await + R / 2
}

#[tokio::test(start_paused = true)]
async fn work_ends_before_its_shard_is_given_back() {
    let rig = Rig { clean_up: R * 2, ..Rig::new() };
    let mut processes = vec![rig.process().await];
    balance(&processes, R * 2).await;
    processes.push(rig.process().await);
    sleep(R * 2).await;
    // The work on the surplus has been told, and has not ended.
    let status = processes[0].status.borrow().clone();
    assert_eq!((status.held.len(), status.is_settled), (SHARDS, false));
    assert_eq!(processes[1].held(), 0);
    balance(&processes, T + R * 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_hands_over_at_once() {
    let rig = Rig::new();
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(rig.process().await);
    }
    balance(&processes, T + R * 3).await;
    let leaver = processes.remove(1);
    leaver.session.stop().await;
    leaver.running.await.unwrap();
    assert!(leaver.status.borrow().held.is_empty());
    let took = balance(&processes, R * 3).await;
    assert!(took < T, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_store_has_left_holds_nothing_and_comes_back() {
    let rig = Rig::new();
    let cut = FaultStore::new(rig.memory.clone());
    let mut processes = vec![rig.process().await, rig.process_on(cut.clone()).await];
    balance(&processes, T + R * 3).await;
    cut.faults().always_any(&Fault::Fail(StoreErrorKind::Unavailable));
    let other = processes.pop().unwrap();
    balance(&processes, T + R * 3).await;
    assert_eq!(other.held(), 0, "its session has ended");
    cut.faults().clear();
    processes.push(other);
    balance(&processes, (T + R) * 3).await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_one_after_another() {
    let rig = Rig::new();
    let mut random = 7_u64;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    let mut processes = vec![rig.process().await];
    let mut worst = Duration::ZERO;
    for _ in 0..60 {
        match draw(3) {
            0 if processes.len() > 1 => processes.remove(draw(processes.len())).kill(),
            1 if processes.len() > 1 => {
                let leaver = processes.remove(draw(processes.len()));
                leaver.session.stop().await;
            }
            _ if processes.len() < 7 => processes.push(rig.process().await),
            _ => {}
        }
        // A moment in which the old balance may still be shown.
        sleep(R / 2).await;
        worst = worst.max(balance_after_loss(&processes).await);
    }
    println!("60 changes, each balanced within {worst:?}, T + 3R = {:?}", T + R * 3);
}

#[test]
fn names_that_are_none_are_refused() {
    for (set, shard) in [("billing", "A"), ("a.json", "b"), ("", "b"), ("billing", "")] {
        assert!(ShardSet::new(set, [shard]).is_err(), "{set:?} {shard:?}");
    }
}
