//! One schedule, by its seed: an old holder stalls with writes in flight, a new one takes over and
//! seals, everything that was in flight lands somewhere, and the old holder resumes.
//!
//! The same seed without the seal shows what the seal is for.

use bytes::Bytes;
use fastrand::Rng;
use lease_core::{
    ObjectKey,
    fenced::{Change, FencedError, FencedObject, Resolution},
    fencing::Epoch,
};
use lease_s3::{
    S3Store,
    testing::{Fault, Held, Late, Method},
};
use std::{ops::AddAssign, time::Duration};
use tokio::task::JoinHandle;

/// What is between the holders and the objects, and can be told what happens to a request.
pub(crate) trait Network {
    /// The next request by `method` meets this fault. Faults of one method are met in order.
    fn next(&self, method: Method, fault: Fault);

    /// Forgets the faults that no request has met.
    fn calm(&self);

    /// The bytes of an object now, whatever happens to requests.
    async fn bytes(&self, key: &ObjectKey) -> Option<Bytes>;
}

/// What schedules came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) schedules: usize,
    /// Stale writes that were sent before the takeover and arrived: before the seal, between its
    /// read and its write, after it.
    pub(crate) arrived: [usize; 3],
    /// Of them, those that were applied.
    pub(crate) applied: [usize; 3],
    /// What the old holder tried when it resumed, and how often it was told that it is stale.
    pub(crate) resumed: usize,
    pub(crate) stale: usize,
    /// Writes of seals that were to be lost, on their way, or answered by nothing or by an error.
    pub(crate) disturbed: usize,
    /// Schedules in which a stale write showed after the takeover.
    pub(crate) visible: usize,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.schedules += other.schedules;
        for phase in 0..3 {
            self.arrived[phase] += other.arrived[phase];
            self.applied[phase] += other.applied[phase];
        }
        self.resumed += other.resumed;
        self.stale += other.stale;
        self.disturbed += other.disturbed;
        self.visible += other.visible;
    }
}

/// When something in flight arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    BeforeTheSeal,
    /// Between its read and its write.
    Within,
    /// At this step after it.
    After(usize),
}

impl When {
    fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..6) {
            0 => Self::BeforeTheSeal,
            1 | 2 => Self::Within,
            _ => Self::After(rng.usize(0..STEPS)),
        }
    }

    fn index(self) -> usize {
        match self {
            Self::BeforeTheSeal => 0,
            Self::Within => 1,
            Self::After(_) => 2,
        }
    }
}

/// What is done after the takeover.
const STEPS: usize = 5;

/// A write of the old holder that was sent.
struct InFlight {
    arrives: When,
    how: How,
}

enum How {
    /// Its sender was told nothing and gave up.
    Late(Late),
    /// Its sender waits for the answer.
    Held(Held, JoinHandle<Result<(), FencedError>>),
}

struct Schedule<'a, N> {
    network: &'a N,
    key: ObjectKey,
    old: FencedObject,
    new: FencedObject,
    in_flight: Vec<InFlight>,
    of_new: Late,
    /// What may show after the takeover.
    allowed: Vec<Option<Bytes>>,
    written: usize,
    sum: Sum,
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

const OLD: u64 = 7;
const NEW: u64 = 8;

/// Runs the schedule of `seed` on a key of its own, with or without the seal.
pub(crate) async fn run<N: Network>(
    network: &N,
    store: &S3Store,
    key: ObjectKey,
    seed: u64,
    seals: bool,
) -> Sum {
    let object = || FencedObject::new(store.clone(), key.clone());
    let mut schedule = Schedule {
        network,
        old: object(),
        new: object(),
        key: key.clone(),
        in_flight: Vec::new(),
        of_new: Late::new(),
        allowed: Vec::new(),
        written: 0,
        sum: Sum { schedules: 1, ..Sum::default() },
    };
    // What the old holder does is the same with and without the seal.
    let mut rng = Rng::with_seed(seed);
    schedule.stall(&mut rng).await;
    schedule.arrive(When::BeforeTheSeal).await;
    match seals {
        true => schedule.seal(&mut Rng::with_seed(!seed)).await,
        false => schedule.take_over_without_a_seal().await,
    }
    schedule.look().await;
    for step in 0..STEPS {
        schedule.step(step, &mut rng, seals).await;
    }
    schedule.of_new.land().await;
    schedule.look().await;
    schedule.sum
}

impl<N: Network> Schedule<'_, N> {
    /// The old holder writes, and then some writes are on their way.
    async fn stall(&mut self, rng: &mut Rng) {
        for _ in 0..rng.usize(0..3) {
            let value = self.value("old");
            self.old.put(epoch(OLD), value).await.unwrap();
        }
        for _ in 0..rng.usize(1..4) {
            let arrives = When::draw(rng);
            let how = if rng.bool() {
                let late = Late::new();
                self.network.next(Method::PUT, Fault::LandLater(late.clone()));
                let error =
                    write(self.old.clone(), rng.u8(..), self.value("old")).await.unwrap_err();
                assert!(error.doubt().is_some(), "{error}");
                How::Late(late)
            } else {
                let held = Held::new();
                self.network.next(Method::PUT, Fault::Hold(held.clone()));
                let sending = write(self.old.clone(), rng.u8(..), self.value("old"));
                let task = tokio::spawn(sending);
                held.holds_one().await;
                How::Held(held, task)
            };
            self.in_flight.push(InFlight { arrives, how });
        }
    }

    fn value(&mut self, of: &str) -> Bytes {
        self.written += 1;
        format!("{of}-{}", self.written).into()
    }

    /// Lets arrive what is to arrive now.
    async fn arrive(&mut self, now: When) {
        let (arriving, later) =
            std::mem::take(&mut self.in_flight).into_iter().partition(|it| it.arrives == now);
        self.in_flight = later;
        for InFlight { how, .. } in arriving {
            self.sum.arrived[now.index()] += 1;
            let applied = match how {
                How::Late(late) => late.land().await.contains(&200),
                How::Held(held, task) => {
                    held.release();
                    task.await.unwrap().is_ok()
                }
            };
            self.sum.applied[now.index()] += usize::from(applied);
        }
    }

    async fn seal(&mut self, rng: &mut Rng) {
        if rng.u8(..) < 40 {
            self.network.next(Method::GET, Fault::Answer(500, "InternalError"));
        }
        let held = Held::new();
        self.network.next(Method::GET, Fault::ApplyThenHold(held.clone()));
        let new = self.new.clone();
        let pause = Duration::from_millis(1);
        let seal = tokio::spawn(async move { new.seal_until_certain(epoch(NEW), pause).await });
        held.holds_one().await; // it was read
        self.arrive(When::Within).await;
        for _ in 0..rng.usize(0..3) {
            self.sum.disturbed += 1;
            let fault = self.disturbance(rng);
            self.network.next(Method::PUT, fault);
        }
        held.release();
        self.allowed.push(seal.await.unwrap().unwrap().content);
        self.network.calm();
    }

    /// What happens to a write of the new holder.
    fn disturbance(&self, rng: &mut Rng) -> Fault {
        match rng.u8(0..6) {
            0 => Fault::ApplyThenDrop,
            1 => Fault::Drop,
            2 => Fault::LandLater(self.of_new.clone()),
            3 => Fault::Answer(409, "ConditionalRequestConflict"),
            4 => Fault::ApplyThenAnswer(500, "InternalError"),
            _ => Fault::Answer(503, "SlowDown"),
        }
    }

    async fn take_over_without_a_seal(&mut self) {
        let read = self.new.read().await.unwrap();
        self.allowed.push(read.and_then(|current| current.content));
        self.arrive(When::Within).await;
    }

    /// Something of the new holder's, of the old one's, and what arrives, in some order.
    async fn step(&mut self, step: usize, rng: &mut Rng, seals: bool) {
        let mut turns = [0, 1, 2];
        rng.shuffle(&mut turns);
        for turn in turns {
            match turn {
                0 => self.arrive(When::After(step)).await,
                1 if rng.u8(0..3) == 0 => self.resume(rng, seals).await,
                2 if rng.u8(0..3) == 0 => self.go_on(rng).await,
                _ => continue,
            }
            self.look().await;
        }
    }

    /// The old holder wakes up and writes as if nothing had been.
    async fn resume(&mut self, rng: &mut Rng, seals: bool) {
        let value = self.value("old");
        let written = write(self.old.clone(), rng.u8(..), value).await;
        self.sum.resumed += 1;
        match written {
            Err(error) if error.stale().is_some() => self.sum.stale += 1,
            Err(error) => panic!("{error}"),
            Ok(()) => assert!(!seals, "it was admitted after the seal"),
        }
    }

    /// The new holder writes.
    async fn go_on(&mut self, rng: &mut Rng) {
        let value = self.value("new");
        self.allowed.push(Some(value.clone()));
        if rng.u8(0..4) == 0 {
            let fault = self.disturbance(rng);
            self.network.next(Method::PUT, fault);
        }
        if let Err(error) = self.new.put(epoch(NEW), value).await {
            let Some(doubt) = error.doubt() else { panic!("{error}") };
            let settled = self.new.settle(doubt).await.unwrap();
            assert_ne!(settled, Resolution::Undecided);
        }
        self.network.calm();
    }

    /// Whether something shows that the new holder neither sealed nor wrote.
    async fn look(&mut self) {
        let shown = self.network.bytes(&self.key).await.and_then(|bytes| content(&bytes));
        if !self.allowed.contains(&shown) {
            self.sum.visible = 1;
        }
    }
}

/// What stands after the first line, read without the code that is tested; `None`: a tombstone.
fn content(bytes: &Bytes) -> Option<Bytes> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let header = std::str::from_utf8(&bytes[..end]).unwrap();
    header.contains("\"state\":\"content\"").then(|| bytes.slice(end + 1..))
}

/// A write of the old holder, in one of the ways in which it can write.
async fn write(object: FencedObject, how: u8, value: Bytes) -> Result<(), FencedError> {
    match how % 4 {
        0 => object.delete(epoch(OLD)).await.map(drop),
        1 => object.update(epoch(OLD), |_| Change::Put(value.clone())).await.map(drop),
        _ => object.put(epoch(OLD), value).await.map(drop),
    }
}
