//! Random schedules of faults, by seed: two instances, one lease, never two open fences, and no tenure
//! lost that a renewal had saved, or that nobody had taken.

mod judge;

use crate::{LIMIT, within};
use judge::{Judge, Lag, Noting};
use lease_core::{
    LeaseManager, Timing,
    fencing::{Clock as _, Fence, SystemClock},
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
    let count = std::env::var("HA_TEST_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(SCHEDULES);
    let limit = LIMIT + LENGTH * u32::try_from(count / AT_ONCE).unwrap_or(u32::MAX) * 2;
    let name = "schedules::no_two_fences_are_open_under_random_faults";
    vec![Trial::test(name, move || {
        within(limit, no_two_fences_are_open_under_random_faults(count))
    })]
}

/// How many seeds, unless `HA_TEST_SCHEDULES` says otherwise. Thousands take a while:
///
/// ```sh
/// HA_TEST_SCHEDULES=1000 cargo test -p lease-s3 --all-features --test s3 schedules -- --nocapture
/// ```
const SCHEDULES: u64 = 150;
/// How many at once.
const AT_ONCE: u64 = 16;
const T: Duration = Duration::from_millis(600);
const R: Duration = Duration::from_millis(100);
/// T − M.
const WINDOW: Duration = Duration::from_millis(480);
/// For how long each schedule goes on.
const LENGTH: Duration = Duration::from_millis(4_000);

/// xorshift64*: the faults of a seed are always the same ones.
struct Random {
    state: u64,
    /// One request in so many meets each of twelve faults.
    calm: u64,
}

impl Random {
    /// Some seeds are calm, and in some hardly anything works.
    fn new(seed: u64) -> Self {
        let calm = [36, 24, 14][(seed % 3) as usize];
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, calm }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }

    /// What a request meets.
    fn fault(&mut self, seen: &Seen) -> Option<Fault> {
        let is_put = seen.method == Method::PUT;
        Some(match self.below(self.calm) {
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
    /// Tenures that expired before the deadline that their renewals had proved.
    lost_while_renewed: AtomicUsize,
    /// Tenures that were lost to another holder, of whom there was no trace.
    lost_to_nobody: AtomicUsize,
    expired: AtomicUsize,
    taken: AtomicUsize,
    renewals: AtomicUsize,
    tenures: AtomicUsize,
}

async fn no_two_fences_are_open_under_random_faults(count: u64) {
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
        running.spawn(schedule(seed, Arc::clone(&server), store.clone(), Arc::clone(&sum)));
    }
    while let Some(schedule) = running.join_next().await {
        schedule.unwrap();
    }
    println!("{count} schedules: {sum:?}");
    assert_eq!(sum.overlaps.load(SeqCst), 0);
    assert_eq!(sum.lost_while_renewed.load(SeqCst), 0);
    assert_eq!(sum.lost_to_nobody.load(SeqCst), 0);
    assert!(
        sum.tenures.load(SeqCst) as u64 >= count.div_ceil(10),
        "too few to show anything: {sum:?}"
    );
    assert!(sum.faults.load(SeqCst) as u64 > count, "{sum:?}");
    assert!(sum.expired.load(SeqCst) + sum.taken.load(SeqCst) > 0 || count < 50, "{sum:?}");
}

/// The fences of both instances that may be open.
type Fences = Arc<Mutex<[Option<Fence>; 2]>>;

async fn schedule(seed: u64, server: Arc<TestServer>, store: S3Store, sum: Arc<Sum>) {
    let fences = Fences::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let lag = Arc::<Lag>::default();
    let watching =
        watch(Arc::clone(&fences), Arc::clone(&lag), Arc::clone(&is_over), Arc::clone(&sum));
    let watching = tokio::spawn(watching);
    let instances: Vec<_> = (0..2)
        .map(|index| {
            let (fences, sum) = (Arc::clone(&fences), Arc::clone(&sum));
            let (server, lag) = (Arc::clone(&server), Arc::clone(&lag));
            let judge = Judge::new(server, &format!("seed-{seed}"), WINDOW, lag, sum);
            tokio::spawn(instance(seed, index, store.clone(), fences, judge))
        })
        .collect();
    for instance in instances {
        instance.await.unwrap();
    }
    is_over.store(true, SeqCst);
    watching.await.unwrap();
}

/// Looks for two open fences. The first is looked at again after the second: it was open all along.
async fn watch(fences: Fences, lag: Arc<Lag>, is_over: Arc<AtomicBool>, sum: Arc<Sum>) {
    while !is_over.load(SeqCst) {
        if let [Some(a), Some(b)] = &*fences.lock().unwrap()
            && a.is_open()
            && b.is_open()
            && a.is_open()
        {
            sum.overlaps.fetch_add(1, SeqCst);
        }
        lag.sleep().await;
    }
}

async fn instance(seed: u64, index: usize, store: S3Store, fences: Fences, judge: Judge) {
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let mut random = Random::new(seed * 2 + index as u64 + 1_000_000);
    let timing = Timing::short(T, R).unwrap();
    assert_eq!(timing.window(), WINDOW);
    let (store, sum) = (Noting::new(store, &judge), Arc::clone(&judge.sum));
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
    let judging = tokio::spawn(judge.listen(lease.events(), lease.status()));
    while began.until(clock.monotonic()) < LENGTH {
        let left = LENGTH.saturating_sub(began.until(clock.monotonic()));
        let Ok(Ok(tenure)) = tokio::time::timeout(left, lease.acquire()).await else { break };
        sum.tenures.fetch_add(1, SeqCst);
        fences.lock().unwrap()[index] = Some(tenure.fence());
        let held = random.millis(1_500);
        drop(tokio::time::timeout(held, tenure.ended()).await);
        match random.below(3) {
            0 => drop(tenure),
            _ => drop(tenure.release().await),
        }
    }
    lease.stop().await;
    drop(lease);
    judging.await.unwrap();
}
