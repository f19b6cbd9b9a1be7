//! Bytes as a schedule.

use std::time::Duration;

#[derive(Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn or_zero(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// The next step: a byte that says what, by whom, and one that says how.
    pub(super) fn step(&mut self) -> Option<Step> {
        let what = self.next()?;
        let how = self.or_zero();
        let node = usize::from(what >> 6);
        Some(Step { node, how, what: What::of(what & 63) })
    }
}

/// The choices that a schedule starts with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) nodes: usize,
    /// T and R in ms, of each node.
    pub(super) timings: [(u64, u64); 3],
    pub(super) has_secret: bool,
    pub(super) has_floor: bool,
    pub(super) has_history: bool,
    /// Somebody deletes the object, or writes it without asking.
    pub(super) has_vandal: bool,
    pub(super) clocks: Clocks,
    pub(super) counter: bool,
    pub(super) first_start_at_once: bool,
    pub(super) trusts_releases: bool,
    pub(super) reclaims: bool,
    /// The first two nodes carry one instance id, as after copying an instance directory.
    pub(super) cloned: bool,
    pub(super) phase_lock: bool,
    pub(super) keeps_out: bool,
    pub(super) has_jitter: bool,
    pub(super) store_tells_age: bool,
    pub(super) short_budget: bool,
    /// A process that wakes up late looks at its timers before it looks at answers.
    pub(super) timers_first: bool,
}

/// What clocks may do. Never both of the last two: a suspend that one clock hides, and a wall clock
/// that was set back, can hide the suspend from both (protocol, 1.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clocks {
    Exact,
    /// Any rate within 8 %; the monotonic clock may stand still in a suspend.
    Standing,
    /// Any rate within 8 %; wall clocks jump.
    Jumping,
}

const TIMINGS: [(u64, u64); 8] = [
    (10_000, 1_000),
    (3_000, 1_000),
    (5_000, 1_500),
    (10_000, 2_500),
    (2_000, 100),
    (20_000, 4_000),
    (50, 20),
    (6_000, 2_500),
];

impl Setup {
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Self {
        let [a, b, c, d] = std::array::from_fn(|_| bytes.or_zero());
        let bit = |byte: u8, at: u8| byte >> at & 1 == 1;
        let timing = |at: u8| TIMINGS[usize::from(at & 7)];
        let (first, others) = (timing(d), if bit(d, 3) { d >> 4 } else { d });
        let has_vandal = bit(a, 1);
        let cloned = bit(b, 4) && bit(b, 5);
        Self {
            nodes: if bit(a, 0) { 3 } else { 2 },
            timings: [first, timing(others), timing(others.wrapping_mul(3))],
            has_vandal,
            has_secret: bit(a, 2),
            has_floor: bit(a, 3),
            has_history: !bit(a, 4),
            counter: bit(a, 5),
            clocks: match a >> 6 {
                0 => Clocks::Exact,
                1 => Clocks::Jumping,
                _ => Clocks::Standing,
            },
            // Each of the two has its hazard documented: somebody else deletes or writes.
            first_start_at_once: bit(b, 0) && !has_vandal,
            trusts_releases: bit(b, 1) && !has_vandal,
            reclaims: bit(b, 2) && !cloned,
            phase_lock: !bit(b, 3),
            cloned,
            keeps_out: !bit(b, 6),
            has_jitter: bit(b, 7),
            store_tells_age: bit(c, 0),
            short_budget: bit(c, 1),
            timers_first: bit(c, 2),
        }
    }

    pub(super) fn largest_ttl(&self) -> Duration {
        let ttls = self.timings[..self.nodes].iter().map(|(ttl, _)| *ttl);
        Duration::from_millis(ttls.max().unwrap_or(0))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) node: usize,
    pub(super) how: u8,
    pub(super) what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Time passes.
    Pass,
    /// How the node's next requests fare.
    Fate,
    /// How long the node's requests and answers travel.
    Travel,
    Confirm,
    /// Whether the node confirms by itself.
    Confirms,
    Abandon,
    Release,
    Drop,
    Want,
    Stop,
    /// The process is killed, and another is started.
    Restart,
    Pause,
    Suspend,
    JumpWall,
    Rate,
    /// How the node's history and its floor fare.
    Disk,
    Floor,
    /// An answer from before is delivered once more.
    Repeat,
    Delete,
    Garbage,
    Forge,
    WriteByHand,
    PutBack,
}

impl What {
    fn of(number: u8) -> Self {
        match number {
            0..=15 => Self::Pass,
            16..=21 => Self::Fate,
            22..=26 => Self::Travel,
            27 | 28 => Self::Confirm,
            29 => Self::Confirms,
            30 => Self::Abandon,
            31..=33 => Self::Release,
            34 => Self::Drop,
            35 => Self::Want,
            36 => Self::Stop,
            37..=39 => Self::Restart,
            40..=42 => Self::Pause,
            43 | 44 => Self::Suspend,
            45 => Self::JumpWall,
            46 | 47 => Self::Rate,
            48 => Self::Disk,
            49 => Self::Floor,
            50 => Self::Repeat,
            51 | 52 => Self::Delete,
            53 | 54 => Self::Garbage,
            55 => Self::Forge,
            56..=58 => Self::WriteByHand,
            _ => Self::PutBack,
        }
    }
}

/// A span that means something to a lease of T and R: from next to nothing to 3 T.
pub(super) fn span(number: u8, (ttl, renew): (u64, u64)) -> Duration {
    let margin = renew.max(ttl / 5);
    let micros = 1_000
        * match number & 15 {
            0 => 0,
            1 => 1,
            2 => renew / 50,
            3 => renew / 10,
            4 => renew / 4,
            5 => renew / 2,
            6 => renew - 1,
            7 => renew,
            8 => renew + renew / 10,
            9 => renew * 2,
            10 => margin,
            11 => ttl - margin,
            12 => ttl - margin / 2,
            13 => ttl,
            14 => ttl + renew,
            _ => ttl * 3,
        };
    Duration::from_micros(micros)
}
