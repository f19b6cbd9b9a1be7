//! Random schedules of faults, by seed: two instances, one lease, and never two open fences.

use crate::trials;
use lease_core::{
    LeaseManager, Timing,
    fencing::{Clock as _, Fence, SystemClock},
    machine::{EndReason, Event},
    runner::{Delivery, EventStream},
};
use lease_s3::{
    S3Store,
    testing::{Fault, Held, Late, Method, Seen, TestServer},
};
use libtest_mimic::Trial;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinSet;

pub(crate) fn trials() -> Vec<Trial> {
    trials![no_two_fences_are_open_under_random_faults]
}

/// How many seeds, unless `HA_TEST_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 200;
/// How many at once.
const AT_ONCE: u64 = 16;
/// For how long each schedule goes on.
const LENGTH: Duration = Duration::from_millis(4_000);

/// xorshift64*: the faults of a seed are always the same ones.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }

    /// What a request meets: two in three meet nothing.
    fn fault(&mut self, seen: &Seen) -> Option<Fault> {
        let is_put = seen.method == Method::PUT;
        Some(match self.below(36) {
            0 => Fault::Drop,
            1 | 2 => Fault::ApplyThenDrop,
            3 => Fault::Answer(500, "InternalError"),
            4 => Fault::Answer(503, "SlowDown"),
            5 if is_put => Fault::Answer(409, "ConditionalRequestConflict"),
            6 => Fault::Answer(403, "RequestTimeTooSkewed"),
            7 if is_put => Fault::ApplyThenAnswer(500, "InternalError"),
            8 => Fault::Hold(self.held()),
            9 => Fault::ApplyThenHold(self.held()),
            10 | 11 if is_put => {
                let (late, after) = (Late::new(), self.millis(700));
                let landing = late.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    landing.land().await;
                });
                Fault::LandLater(late)
            }
            _ => return None,
        })
    }

    fn held(&mut self) -> Held {
        let (held, after) = (Held::new(), self.millis(500));
        let release = held.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            release.release();
        });
        held
    }
}

/// What all schedules came to.
#[derive(Debug, Default)]
struct Sum {
    faults: AtomicUsize,
    overlaps: AtomicUsize,
    ended_too_soon: AtomicUsize,
    renewals: AtomicUsize,
    tenures: AtomicUsize,
}

async fn no_two_fences_are_open_under_random_faults() {
    let count = std::env::var("HA_TEST_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(SCHEDULES);
    let (sum, server) = (Arc::<Sum>::default(), Arc::new(TestServer::start().await.unwrap()));
    let store = server.options("p").connect().await.unwrap();
    let random = Mutex::new(HashMap::<String, Random>::new());
    let counted = Arc::clone(&sum);
    server.choose(move |seen| {
        let cluster = seen.key.split('/').nth(1)?;
        let seed = cluster.strip_prefix("seed-")?.parse().ok()?;
        let mut random = random.lock().unwrap();
        let random = random.entry(cluster.to_owned()).or_insert_with(|| Random::new(seed));
        let fault = random.fault(seen)?;
        counted.faults.fetch_add(1, SeqCst);
        Some(fault)
    });
    let mut running = JoinSet::new();
    for seed in 0..count {
        while running.len() as u64 >= AT_ONCE {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(schedule(seed, store.clone(), Arc::clone(&sum)));
    }
    while let Some(schedule) = running.join_next().await {
        schedule.unwrap();
    }
    println!("{count} schedules: {sum:?}");
    assert_eq!(sum.overlaps.load(SeqCst), 0);
    assert_eq!(sum.ended_too_soon.load(SeqCst), 0);
    assert!(
        sum.tenures.load(SeqCst) as u64 >= count.div_ceil(10),
        "too few to show anything: {sum:?}"
    );
    assert!(sum.faults.load(SeqCst) as u64 > count, "{sum:?}");
}

/// The fences of both instances that may be open.
type Fences = Arc<Mutex<[Option<Fence>; 2]>>;

async fn schedule(seed: u64, store: S3Store, sum: Arc<Sum>) {
    let fences = Fences::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(watch(Arc::clone(&fences), Arc::clone(&is_over), Arc::clone(&sum)));
    let instances: Vec<_> = (0..2)
        .map(|index| {
            let (fences, sum) = (Arc::clone(&fences), Arc::clone(&sum));
            tokio::spawn(instance(seed, index, store.clone(), fences, sum))
        })
        .collect();
    for instance in instances {
        instance.await.unwrap();
    }
    is_over.store(true, SeqCst);
    watching.await.unwrap();
}

/// Looks for two open fences. The first is looked at again after the second: it was open all along.
async fn watch(fences: Fences, is_over: Arc<AtomicBool>, sum: Arc<Sum>) {
    while !is_over.load(SeqCst) {
        if let [Some(a), Some(b)] = &*fences.lock().unwrap()
            && a.is_open()
            && b.is_open()
            && a.is_open()
        {
            sum.overlaps.fetch_add(1, SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn instance(seed: u64, index: usize, store: S3Store, fences: Fences, sum: Arc<Sum>) {
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let mut random = Random::new(seed * 2 + index as u64 + 1_000_000);
    let timing = Timing::short(Duration::from_millis(600), Duration::from_millis(100)).unwrap();
    let lease = loop {
        // Starting reads the lease, which meets faults too.
        let builder = LeaseManager::builder(store.clone(), &format!("seed-{seed}"));
        if let Ok(lease) = builder.timing(timing).ephemeral_instance().start().await {
            break lease;
        }
        if began.until(clock.monotonic()) > LENGTH {
            return;
        }
    };
    let counting = tokio::spawn(count(lease.events(), clock, Arc::clone(&sum)));
    while began.until(clock.monotonic()) < LENGTH {
        let left = LENGTH.saturating_sub(began.until(clock.monotonic()));
        let Ok(Ok(tenure)) = tokio::time::timeout(left, lease.acquire()).await else { break };
        sum.tenures.fetch_add(1, SeqCst);
        fences.lock().unwrap()[index] = Some(tenure.fence());
        let held = random.millis(700);
        drop(tokio::time::timeout(held, tenure.ended()).await);
        match random.below(3) {
            0 => drop(tenure),
            _ => drop(tenure.release().await),
        }
    }
    lease.stop().await;
    drop(lease);
    counting.await.unwrap();
}

/// Counts renewals, and tenures that expired before the deadline that their last renewal proved.
async fn count(mut events: EventStream, clock: SystemClock, sum: Arc<Sum>) {
    let mut proved = None;
    while let Some(delivery) = events.next().await {
        match delivery {
            Delivery::Event(Event::TakingOver { .. }) => proved = None,
            Delivery::Event(Event::Renewed { deadline, .. }) => {
                sum.renewals.fetch_add(1, SeqCst);
                proved = Some(deadline);
            }
            Delivery::Event(Event::Ended { reason: EndReason::Expired, .. })
                if proved.is_some_and(|deadline| clock.monotonic() < deadline) =>
            {
                sum.ended_too_soon.fetch_add(1, SeqCst);
            }
            _ => {}
        }
    }
}
