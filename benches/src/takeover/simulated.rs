//! Kills in simulated time: the production machines of a holder and a standby on a store that is a
//! number. Nothing goes wrong but the kill; `lease_core::testing::sim` is where all else does.

use super::Kills;
use fastrand::Rng;
use fencing::{MonotonicTime, Reading, WallTime};
use lease_core::{
    Timing, Version,
    auth::Verdict,
    key::InstanceId,
    machine::{
        Action, Config, Draft, Entropy, Event, Facts, FenceOrder, Machine, Past, Reply, Request,
        RequestId, Sighting, TrustRelease,
    },
    record::Nonce,
    store::StoreErrorKind,
};
use std::{sync::Arc, time::Duration};

/// How long a request takes to a store, and its answer back: from one to the other, evenly.
pub type Travel = [Duration; 2];
/// To a directory.
pub const NEAR: Travel = [Duration::from_micros(100), Duration::from_millis(2)];
/// To a bucket.
pub const FAR: Travel = [Duration::from_millis(5), Duration::from_millis(20)];

/// How many renewals a standby watches before the kill.
const WATCHED: [u32; 2] = [40, 80];

/// So many kills with T = 3 s and R = 1 s.
///
/// # Panics
///
/// If a takeover takes longer than T + R and two operations of the store: that is promised.
#[must_use]
pub fn kills(count: u32, travel: Travel, phase_lock: bool, seed: u64) -> Kills {
    let mut rng = Rng::with_seed(seed);
    let (mut took, mut reads, mut watched) =
        (Vec::with_capacity(count as usize), 0, Duration::ZERO);
    for _ in 0..count {
        let killed = World::new(phase_lock, travel, &mut rng).kill();
        took.push(u64::try_from(killed.took.as_nanos()).unwrap_or(u64::MAX));
        reads += killed.reads;
        watched += killed.watched;
    }
    let spans = watched.as_secs_f64() / timing().renew().as_secs_f64();
    Kills::new(took, f64::from(reads) / spans)
}

/// T = 3 s, R = 1 s, as in the kills of real processes.
#[must_use]
pub fn timing() -> Timing {
    Timing::short(Duration::from_secs(3), Duration::from_secs(1)).expect("it is in range")
}

/// What came of one kill.
struct Killed {
    took: Duration,
    reads: u32,
    watched: Duration,
}

/// One request on its way: it reaches the store, and its answer comes back.
struct Flight {
    node: usize,
    id: RequestId,
    request: Request,
    lands: MonotonicTime,
    answer: Option<(MonotonicTime, Reply)>,
}

struct Node {
    machine: Machine,
    entropy: Counted,
    is_alive: bool,
    started: MonotonicTime,
}

struct World<'r> {
    rng: &'r mut Rng,
    travel: Travel,
    now: MonotonicTime,
    nodes: [Node; 2],
    flights: Vec<Flight>,
    /// What stands in the store.
    version: u64,
    facts: Option<Arc<Facts>>,
    /// When the last write that landed was sent.
    last_sent: MonotonicTime,
    renewals: u32,
    reads: u32,
    opened: Option<(usize, MonotonicTime)>,
}

impl<'r> World<'r> {
    fn new(phase_lock: bool, travel: Travel, rng: &'r mut Rng) -> Self {
        let now = MonotonicTime::from_nanos(1_000_000_000_000);
        let renew = timing().renew();
        // When the two look at the store relative to each other is left to chance.
        let late = renew * 5 + renew.mul_f64(rng.f64());
        let mut node = |name: &str, started: MonotonicTime| {
            let mut config = Config::new(InstanceId::new(name).expect("a name"), timing());
            config.phase_lock = phase_lock;
            config.trust_release = TrustRelease::Always;
            config.jitter_seed = Some(rng.u64(..));
            let mut machine = Machine::new(config, Past::default(), reading(started));
            machine.want(true, reading(started));
            Node { machine, entropy: Counted(rng.u128(..)), is_alive: true, started }
        };
        let nodes = [node("a", now), node("b", now + late)];
        Self {
            rng,
            travel,
            now,
            nodes,
            flights: Vec::new(),
            version: 0,
            facts: None,
            last_sent: now,
            renewals: 0,
            reads: 0,
            opened: None,
        }
    }

    /// Lets the standby watch, kills the holder at any moment, and waits for the takeover.
    fn kill(mut self) -> Killed {
        let watched = self.rng.u32(WATCHED[0]..=WATCHED[1]);
        while self.renewals < watched {
            self.step();
        }
        let spare = self.now + timing().renew().mul_f64(self.rng.f64());
        while self.next().is_some_and(|next| next < spare) {
            self.step();
        }
        assert_eq!(self.opened.map(|(node, _)| node), Some(0), "the first one holds it");
        let watched = self.now - self.nodes[1].started;
        let reads = self.reads;
        self.nodes[0].is_alive = false;
        self.opened = None;
        while self.opened.is_none() {
            self.step();
        }
        let took = self.now - self.last_sent;
        // To the store, T + R, the smallest spread, and two operations.
        let spread = timing().renew() / 100;
        let most = timing().ttl() + timing().renew() + spread + self.travel[1] * 5;
        assert!(took <= most, "promised within T + R and two operations, it took {took:?}");
        Killed { took, reads, watched }
    }

    fn next(&self) -> Option<MonotonicTime> {
        let flights = self.flights.iter().map(|it| it.answer.as_ref().map_or(it.lands, |it| it.0));
        let timers = self.nodes.iter().filter(|it| it.is_alive).filter_map(|node| {
            let due = node.machine.poll_timeout(reading(self.now.max(node.started)));
            due.map(|due| due.max(node.started))
        });
        flights.chain(timers).min()
    }

    /// Goes to the next moment at which something happens, and lets it happen.
    fn step(&mut self) {
        let Some(next) = self.next() else { unreachable!("somebody is alive") };
        self.now = self.now.max(next);
        while let Some(at) = self.flights.iter().position(|it| it.is_due(self.now)) {
            let mut flight = self.flights.swap_remove(at);
            match flight.answer.take() {
                None => {
                    let reply = self.answer(&flight);
                    let back = self.now + self.travel();
                    flight.answer = Some((back, reply));
                    self.flights.push(flight);
                }
                Some((_, reply)) => {
                    let node = &mut self.nodes[flight.node];
                    if node.is_alive {
                        node.machine.handle_reply(flight.id, reply, reading(self.now));
                        self.settle(flight.node);
                    }
                }
            }
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_alive && self.nodes[node].started <= self.now {
                self.settle(node);
            }
        }
    }

    /// The request has reached the store.
    fn answer(&mut self, flight: &Flight) -> Reply {
        match &flight.request {
            Request::Read { unless } => self.read(unless.as_ref()),
            Request::Create(draft) if self.facts.is_none() => self.write(flight, draft),
            Request::Replace(draft, version) if *version == self.shown() => {
                self.write(flight, draft)
            }
            _ => Reply::Failed(StoreErrorKind::Precondition),
        }
    }

    fn read(&self, unless: Option<&Version>) -> Reply {
        let version = self.shown();
        Reply::Read(match &self.facts {
            None => Sighting::Missing,
            Some(_) if unless == Some(&version) => Sighting::NotModified,
            Some(facts) => Sighting::Found {
                version,
                verdict: Verdict::Unsigned,
                facts: Some(Arc::clone(facts)),
                age: None,
            },
        })
    }

    fn write(&mut self, flight: &Flight, draft: &Draft) -> Reply {
        self.version += 1;
        let holder = InstanceId::new(["a", "b"][flight.node]).ok().filter(|_| draft.held);
        let nonce = Some(draft.nonce);
        let facts = Facts::new(holder, draft.epoch, draft.seq, nonce, timing().ttl());
        self.facts = Some(Arc::new(facts));
        if flight.node == 0 {
            self.last_sent =
                MonotonicTime::default() + Duration::from_nanos(draft.renewed_at.unix_nanos());
            self.renewals += u32::from(self.opened.is_some());
        }
        Reply::Written(self.shown())
    }

    fn shown(&self) -> Version {
        Version::new(self.version.to_string())
    }

    /// Carries out what a machine wants.
    fn settle(&mut self, node: usize) {
        let now = reading(self.now);
        self.nodes[node].machine.handle_timeout(now);
        loop {
            let it = &mut self.nodes[node];
            let action = it.machine.poll_action(now, &mut it.entropy);
            let mut was_quiet = action.is_none();
            match action {
                Some(Action::Send(id, request)) => {
                    if node == 1 && matches!(request, Request::Read { .. }) {
                        self.reads += 1;
                    }
                    let lands = self.now + self.travel();
                    self.flights.push(Flight { node, id, request, lands, answer: None });
                }
                Some(Action::Fence(FenceOrder::Open { .. })) => {
                    self.opened = Some((node, self.now));
                }
                _ => {}
            }
            let it = &mut self.nodes[node];
            while let Some(event) = it.machine.poll_event() {
                was_quiet = false;
                if let Event::TakingOver { .. } = event {
                    it.machine.confirm(now);
                }
            }
            if was_quiet {
                return;
            }
        }
    }

    fn travel(&mut self) -> Duration {
        let [least, most] = self.travel;
        least + (most - least).mul_f64(self.rng.f64())
    }
}

impl Flight {
    fn is_due(&self, now: MonotonicTime) -> bool {
        self.answer.as_ref().map_or(self.lands, |answer| answer.0) <= now
    }
}

/// Both clocks show the same, so that a record tells when it was sent.
fn reading(now: MonotonicTime) -> Reading {
    Reading { monotonic: now, wall: WallTime::from_unix_nanos(now.as_nanos()) }
}

struct Counted(u128);

impl Entropy for Counted {
    fn nonce(&mut self) -> Nonce {
        self.0 = self.0.wrapping_add(1);
        Nonce::from_bytes(self.0.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_leads_to_the_same_takeovers() {
        let (first, second) = (kills(20, NEAR, true, 7), kills(20, NEAR, true, 7));
        assert_eq!(first, second);
        assert_ne!(first, kills(20, NEAR, true, 8));
        assert!(first.at(0) >= timing().ttl(), "nobody takes over before T");
    }

    #[test]
    fn phase_lock_is_what_makes_the_difference() {
        let (with, without) = (kills(300, FAR, true, 1), kills(300, FAR, false, 1));
        let late = |kills: &Kills| kills.at(500) - timing().ttl();
        assert!(late(&with) * 3 < late(&without), "{:?} {:?}", late(&with), late(&without));
    }
}
