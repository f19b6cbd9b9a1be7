//! Random schedules: whatever happens there is at most one holder of a lease, and in peace there is one.
//!
//! The simulator does the same at length. These few find what a change breaks at once.

use crate::{
    parts::{Fate, Link, Stored, key, secs, timed},
    world::World,
};
use lease_core::{
    machine::{Protocol, Rules},
    session::{Object, Request, SessionRules, WishError},
    store::StoreErrorKind,
};

const LEASES: [&str; 3] = ["x", "y", "z"];

/// SplitMix64.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn link(&mut self) -> Link {
        let fate = match self.roll(12) {
            0 | 1 => Fate::Lost,
            2 | 3 => Fate::Unanswered,
            4 => Fate::Told(StoreErrorKind::Unavailable),
            5 => Fate::Told(StoreErrorKind::InDoubt),
            6 => Fate::Told(StoreErrorKind::Contended),
            _ => Fate::Answered,
        };
        let mut delay = |most: f64| {
            let part = self.roll(1_000) as f64 / 1_000.0;
            secs(0.02 + most * part * part * part)
        };
        Link { out: delay(12.0), back: delay(3.0), fate }
    }
}

struct Run<R: SessionRules> {
    world: World<R>,
    dice: Dice,
    is_audited: bool,
}

impl<R: SessionRules> Run<R> {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut world = World::new();
        world.tick = secs(0.02);
        // With a small R nearly nothing but the rules is left to help.
        let renew = [0.8, 2.0, 3.3][usize::try_from(dice.roll(3)).unwrap()];
        let is_audited = dice.roll(3) == 0;
        for name in ["a", "b", "c"] {
            let mut config = timed(name, 10.0, renew);
            if is_audited {
                config = config.with_audit(secs(4.0)).unwrap();
            }
            config.max_in_flight = 1 + usize::try_from(dice.roll(3)).unwrap();
            config.jitter_seed = (dice.roll(2) == 0).then(|| dice.roll(u64::MAX));
            let node = world.add(config);
            world.nodes[node].clock.set_rate(950_000 + dice.roll(100_000));
        }
        Self { world, dice, is_audited }
    }

    fn trouble(&mut self) -> Result<(), String> {
        let node = usize::try_from(self.dice.roll(3)).unwrap();
        let lease = LEASES[usize::try_from(self.dice.roll(3)).unwrap()];
        let Self { world, dice, .. } = self;
        match dice.roll(16) {
            0..=3 => {
                let wished = world.with(node, |machine, now| machine.acquire(key(lease), now))?;
                if let Err(WishError::Full { .. } | WishError::Stopped { .. }) = wished {
                    return Err(format!("{wished:?}"));
                }
            }
            4 => drop(world.with(node, |machine, now| machine.try_acquire(key(lease), now))?),
            5 | 6 => world.with(node, |machine, now| machine.give_up(&key(lease), now))?,
            7 | 8 => drop(world.with(node, |machine, now| machine.release(&key(lease), now))?),
            9 => world.nodes[node].is_paused = !world.nodes[node].is_paused,
            10 => world.cut_off(node),
            11 => world.reconnect(node),
            12 => {
                let mut dice = dice.clone();
                world.route(node, move |_, _| dice.link());
            }
            13 => {
                // Only writes of leases are in trouble.
                let mut dice = dice.clone();
                world.route(node, move |object, request| match (object, request) {
                    (Object::Lease(_), Request::Create(_) | Request::Replace(..)) => dice.link(),
                    _ => Link::default(),
                });
            }
            14 if dice.roll(4) == 0 => world.restart(node),
            15 if dice.roll(4) == 0 => self.tamper(node, lease),
            _ => {}
        }
        Ok(())
    }

    /// What a hand may do to the store: to a session anything, to a lease only with audit.
    fn tamper(&mut self, node: usize, lease: &str) {
        let Self { world, dice, is_audited } = self;
        let object = match dice.roll(2) {
            0 if *is_audited => Object::Lease(key(lease)),
            _ => world.session(node),
        };
        match dice.roll(3) {
            0 => drop(world.store.objects.insert(object, Stored::Garbage(dice.roll(u64::MAX)))),
            _ => drop(world.store.objects.remove(&object)),
        }
    }

    fn go(mut self) -> Result<(), String> {
        for _ in 0..self.dice.roll(60) {
            let pause = self.dice.roll(1_500) as f64 / 1_000.0;
            self.trouble()?;
            self.world.run(pause)?;
        }
        for node in 0..3 {
            self.world.reconnect(node);
            self.world.nodes[node].is_paused = false;
        }
        for lease in LEASES {
            for node in 0..3 {
                drop(self.world.with(node, |machine, now| machine.acquire(key(lease), now))?);
            }
        }
        self.world.run_until(70.0, |world| {
            LEASES.iter().all(|lease| (0..3).any(|node| world.holds(node, lease)))
        })
    }
}

fn runs() -> u64 {
    std::env::var("HA_TEST_SESSIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn whatever_happens_there_is_at_most_one_and_in_peace_there_is_one() {
    for seed in 0..runs() {
        Run::<Protocol>::new(seed).go().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
}

/// The same schedules show the fault of a machine that lacks a rule.
fn finds<R: SessionRules>() -> Option<(u64, String)> {
    (0..400).find_map(|seed| Run::<R>::new(seed).go().err().map(|fault| (seed, fault)))
}

#[test]
fn the_schedules_find_a_machine_that_watches_a_session_for_r_only() {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    struct Without;
    impl Rules for Without {}
    impl SessionRules for Without {
        const SESSION_IS_WATCHED_FOR_W: bool = false;
    }
    println!("{:?}", finds::<Without>().unwrap());
}
