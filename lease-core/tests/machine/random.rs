//! A smoke test: three nodes, whatever can happen to them, and what must hold all the same.
//!
//! 300 worlds of 60 s of faults each (lost, slow, conflicting and doubtful requests, pauses,
//! restarts, deletions, garbage, clocks that run off by 5 %, applications that give up), and then
//! peace. No two fences are ever open at once, epochs grow in the order in which fences open, every
//! tenure ends once, and in peace somebody gets the lease in time.
//!
//! A failure names its seed: `HOLDFAST_SEED=17 cargo test -p lease-core --test machine random`.
//! `HOLDFAST_SEEDS=10000` runs that many.

use crate::world::{Fate, Link, Object, World, config, secs};
use fencing::{Clock as _, Epoch, testing::ManualClock};
use lease_core::{
    machine::{AbandonReason, Event, Note, Past, Protocol, Role},
    store::StoreErrorKind,
};
use std::time::Duration;

const SEEDS: u64 = 300;
const NODES: usize = 3;
const TTL_SECS: f64 = 5.0;
const FAULTS_SECS: f64 = 60.0;

#[test]
fn whatever_happens_there_is_at_most_one_and_in_peace_there_is_one() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("HOLDFAST_SEED").unwrap_or(0);
    let count = number("HOLDFAST_SEEDS").unwrap_or(if first > 0 { 1 } else { SEEDS });
    let mut sums = Sums::default();
    for seed in first..first + count {
        if let Err(fault) = Chaos::new(seed).run(&mut sums) {
            panic!("HOLDFAST_SEED={seed}: {fault}");
        }
    }
    println!("{sums:?}");
    // A test in which nothing happens shows nothing.
    assert!(count < SEEDS || sums.opened > 3 * SEEDS as usize, "{sums:?}");
    assert!(count < SEEDS || sums.ended > 3 * SEEDS as usize, "{sums:?}");
}

#[derive(Debug, Default)]
struct Sums {
    writes: usize,
    opened: usize,
    ended: usize,
    restarts: usize,
    /// The longest time from the beginning of peace to an open fence.
    longest: Duration,
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.roll(below))
    }
}

/// What a node's last tenure came to, from its events.
#[derive(Default)]
struct Told {
    read: usize,
    tenure: Option<Epoch>,
}

struct Chaos {
    dice: Dice,
    world: World<Protocol>,
    told: Vec<Told>,
    renew: f64,
    /// The epoch that the store shows, and since when.
    current: (Option<Epoch>, Duration),
    ended: usize,
    restarts: usize,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let renew = [0.25, 0.5, 1.0, 1.5][dice.roll(4) as usize];
        let mut world = World::new();
        world.tick = secs(0.025);
        for node in 0..NODES {
            let mut config = config(["a", "b", "c"][node], TTL_SECS, renew);
            config.jitter_seed = Some(seed + node as u64);
            world.add(config, Past::default());
            let rate = 950_000 + dice.roll(100_001);
            world.nodes[node].clock.set_rate(rate);
        }
        let told = (0..NODES).map(|_| Told::default()).collect();
        let current = (None, Duration::ZERO);
        Self { dice, world, told, renew, current, ended: 0, restarts: 0 }
    }

    fn run(mut self, sums: &mut Sums) -> Result<(), String> {
        while self.world.time < secs(FAULTS_SECS) {
            for node in 0..NODES {
                self.meddle_with(node);
            }
            self.meddle_with_the_object();
            self.step()?;
        }
        for node in &mut self.world.nodes {
            (node.is_paused, node.link, node.confirms) = (false, Link::default(), true);
            node.history_works = true;
        }
        for node in 0..NODES {
            self.world.with(node, |machine, now| {
                machine.want(true, now);
                machine.confirm(now);
            });
        }
        // Clocks may be 5 % slow, and whoever abandoned at the last moment keeps out for T.
        let limit = secs((2.0 * TTL_SECS + 3.0 * self.renew) / 0.95);
        while !self.world.nodes.iter().any(|node| node.machine.role() == Role::Active) {
            let peace = self.world.time - secs(FAULTS_SECS);
            if peace > limit {
                return Err(format!("nobody is active after {peace:?} of peace"));
            }
            self.step()?;
            sums.longest = sums.longest.max(peace);
        }
        let epochs: Vec<_> = self.world.opened.iter().map(|(_, _, epoch)| *epoch).collect();
        if !epochs.is_sorted_by(|a, b| a < b) {
            return Err(format!("epochs did not grow: {:?}", self.world.opened));
        }
        sums.writes += self.world.writes;
        sums.opened += epochs.len();
        sums.ended += self.ended;
        sums.restarts += self.restarts;
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.world.step()?;
        self.set_wall_clocks();
        let facts = self.world.object.as_ref().and_then(|object| object.facts.as_ref());
        let epoch = facts.map(|facts| facts.epoch);
        if epoch != self.current.0 {
            self.current = (epoch, self.world.time);
        }
        for node in 0..NODES {
            let told = &mut self.told[node];
            let events = &self.world.nodes[node].events;
            for event in &events[told.read..] {
                let was = told.tenure;
                let is_right = match event {
                    Event::TakingOver { epoch, .. } => {
                        told.tenure = Some(*epoch);
                        was.is_none()
                    }
                    Event::Active { epoch } => was == Some(*epoch),
                    Event::Ended { epoch, .. } => {
                        self.ended += 1;
                        told.tenure.take() == Some(*epoch)
                    }
                    _ => true,
                };
                if !is_right {
                    return Err(format!("node {node} has {was:?} and says {event:?}: {events:?}"));
                }
            }
            told.read = events.len();
        }
        Ok(())
    }

    /// About one thing in ten seconds happens to each node, and every two seconds a new link.
    fn meddle_with(&mut self, node: usize) {
        if self.dice.one_in(80) {
            self.world.nodes[node].link = self.link();
        }
        if self.world.nodes[node].is_paused {
            self.world.nodes[node].is_paused = !self.dice.one_in(150);
            return;
        }
        if !self.dice.one_in(400) {
            return;
        }
        let deed = self.dice.roll(10);
        let coin = !self.dice.one_in(3);
        match deed {
            0 | 1 => self.world.nodes[node].is_paused = true,
            2 => self.restart(node),
            3 => self.world.nodes[node].confirms = coin,
            4 => self.world.nodes[node].history_works = coin,
            5 => self.world.with(node, |machine, now| machine.release(now)),
            6 => self.world.with(node, |machine, now| {
                machine.abandon(AbandonReason::Application, now);
            }),
            7 => self.world.with(node, |machine, now| machine.drop_tenure(coin, now)),
            8 => self.world.with(node, |machine, now| machine.want(coin, now)),
            _ => self.world.with(node, |machine, now| machine.confirm(now)),
        }
    }

    fn link(&mut self) -> Link {
        let fate = match self.dice.roll(20) {
            0 => Fate::Lost,
            1 => Fate::Told(StoreErrorKind::InDoubt),
            2 => Fate::Told(StoreErrorKind::Contended),
            3 => Fate::Told(StoreErrorKind::Unavailable),
            4 | 5 => Fate::AppliedInDoubt,
            _ => Fate::Answered,
        };
        // Some requests arrive long after their sender has given them up.
        let slowest = [50, 50, 50, 50, 50, 50, 1_000, 10_000][self.dice.roll(8) as usize];
        Link { out: self.dice.millis(slowest), back: self.dice.millis(slowest), fate }
    }

    fn restart(&mut self, node: usize) {
        let past = past(&self.world.nodes[node].notes);
        self.world.restart(node, past);
        self.told[node] = Told::default();
        self.restarts += 1;
    }

    /// Wall clocks are set from time to time, as they are everywhere: the epochs rest on that after
    /// a deletion. What they are off by stays below a second and a half.
    fn set_wall_clocks(&self) {
        let true_wall = ManualClock::new().wall() + self.world.time;
        for node in &self.world.nodes {
            let wall = node.clock.wall();
            if wall > true_wall + secs(1.0) {
                node.clock.jump_wall(-1);
            } else if true_wall > wall + secs(1.0) {
                node.clock.jump_wall(1);
            }
        }
    }

    /// Not within three seconds of an acquisition: epochs that no process has seen are told apart by
    /// the second in which they were drawn, and clocks are not that exact.
    fn meddle_with_the_object(&mut self) {
        if !self.dice.one_in(400) || self.world.time - self.current.1 < secs(3.0) {
            return;
        }
        self.world.object = match self.dice.one_in(3) {
            true => Some(Object::garbage()),
            false => None,
        };
    }
}

/// What the history shows after these notes.
fn past(notes: &[Note]) -> Past {
    let mut past = Past::default();
    for note in notes {
        past.last_epoch = past.last_epoch.max(note.opened.map(|tenure| tenure.epoch));
        past.reclaimable = note.opened.or(past.reclaimable);
        past.last_release = note.release.or(past.last_release);
        past.largest_ttl = past.largest_ttl.max(note.largest_ttl);
    }
    past
}
