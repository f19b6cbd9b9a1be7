//! The worlds that are searched: small, and each with bounds of its own.

use super::{check::Reached, machine::Kept};
use lease_core::{
    Timing,
    machine::{EpochOrigin, Protocol},
    timing::TimingError,
};
use std::time::Duration;

/// One thing out of the ordinary. A world allows some kinds, and so many in one run; each may come
/// at any step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    /// The application gives its takeover up.
    Abandon,
    /// A write is refused since another was in flight.
    Conflict,
    /// A process dies. It may be started again.
    Crash,
    /// A host does not reach the store until it is mended; what it sent may still arrive then.
    Cut,
    /// A request stays on its way for a tick or more, or for ever.
    Delay,
    /// A request is carried out, and its answer stays on its way for a tick or more, or for ever.
    DelayAnswer,
    /// The lease is deleted by hand.
    Delete,
    /// A write is reported as in doubt. It may land now, later, or never.
    Doubt,
    /// The lease is replaced by bytes that are no record.
    Garbage,
    /// A process dies and its directory is lost: it is another instance that may be started.
    Lose,
    /// A process stands still; its clocks go on.
    Pause,
    /// An older record of the cluster is put back.
    PutBack,
    /// The application gives the lease back.
    Release,
    /// A host is suspended; its monotonic clock does not count meanwhile, its wall clock does.
    Suspend,
}

/// What a world is made of, and how far it is searched.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// The rules that are kept in it.
    pub(crate) kept: Kept,
    /// T and R of each instance.
    pub(crate) timings: Vec<Timing>,
    /// How fast the clocks of each instance run, in hundredths of true time.
    pub(crate) rates: Vec<u32>,
    /// How fast the wall clocks run beside the others, in hundredths. Where they are slow, as if they
    /// were set back again and again, nothing but the monotonic clocks shuts a fence.
    pub(crate) wall_rate: u32,
    /// Between two moments at which something can happen.
    pub(crate) tick: Duration,
    /// How many of them a run has.
    pub(crate) ticks: u16,
    /// How many writes of the lease all instances send together at most.
    pub(crate) writes: u32,
    pub(crate) faults: u8,
    pub(crate) kinds: &'static [Fault],
    pub(crate) epochs: EpochOrigin,
    /// Instances have a history, and its writes take a while, in which their process may die.
    pub(crate) has_history: bool,
    /// A restarted process takes back what it held.
    pub(crate) reclaim: bool,
    /// The first instance is active from the beginning, and the others have seen it.
    pub(crate) starts_held: bool,
    /// What must happen in some run of it.
    pub(crate) shows: &'static [Reached],
}

/// How far the worlds are searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// As far as is done in a few minutes.
    Full,
    /// As far as is done in a minute.
    Quick,
}

impl Depth {
    const fn of<T: Copy>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

const RENEW: Duration = Duration::from_secs(10);

fn timing(ttl: u32) -> Result<Timing, TimingError> {
    Timing::short(RENEW * ttl, RENEW)
}

impl Setting {
    /// Instances with T = `ttl` R each, of which the first is active.
    fn new(name: &'static str, ttls: &[u32], largest: u32) -> Result<Self, TimingError> {
        let timings: Result<Vec<_>, _> =
            ttls.iter().map(|ttl| timing(*ttl)?.with_max_cluster_ttl(RENEW * largest)).collect();
        Ok(Self {
            name,
            kept: Kept::by::<Protocol>(),
            timings: timings?,
            rates: vec![100; ttls.len()],
            wall_rate: 100,
            tick: RENEW,
            ticks: 10,
            writes: 24,
            faults: 2,
            kinds: &[],
            epochs: EpochOrigin::Counter,
            has_history: false,
            reclaim: false,
            starts_held: true,
            shows: &[],
        })
    }
}

/// Every world.
///
/// # Errors
///
/// None: no timing here is one that is refused.
#[expect(clippy::too_many_lines, reason = "a table of worlds")]
pub(crate) fn all(depth: Depth) -> Result<Vec<Setting>, TimingError> {
    use Fault::{
        Abandon, Conflict, Crash, Cut, Delay, DelayAnswer, Delete, Doubt, Garbage, Lose, Pause,
        PutBack, Release, Suspend,
    };
    Ok(vec![
        // Answers that do not come, at twice the resolution of the others.
        Setting {
            tick: RENEW / 2,
            ticks: depth.of(11, 10),
            faults: depth.of(3, 2),
            kinds: &[Delay, DelayAnswer, Doubt, Conflict, Delete],
            epochs: EpochOrigin::Clock,
            shows: &[Reached::Own, Reached::Lost],
            ..Setting::new("doubt", &[4, 4], 4)?
        },
        // A new cluster: everybody starts at once, and nobody says that it is new.
        Setting {
            starts_held: false,
            ticks: depth.of(8, 7),
            faults: depth.of(2, 1),
            kinds: &[Doubt, DelayAnswer, Delete, Crash, Release],
            epochs: EpochOrigin::Clock,
            shows: &[Reached::Own],
            ..Setting::new("first start", &[3, 3], 3)?
        },
        // Three instances, and a lease that is deleted, spoilt and given back.
        Setting {
            ticks: 6,
            faults: depth.of(2, 1),
            kinds: &[Delete, Garbage, Release, Abandon, Pause],
            epochs: EpochOrigin::Clock,
            shows: &[Reached::Deletion, Reached::Release],
            ..Setting::new("deletion", &[4, 4, 4], 4)?
        },
        // Three instances that stand still, die and give the lease back.
        Setting {
            wall_rate: 50,
            ticks: 7,
            faults: depth.of(2, 1),
            kinds: &[Pause, Release, Doubt],
            shows: &[Reached::Takeover, Reached::Release],
            ..Setting::new("three", &[3, 3, 3], 3)?
        },
        // With a history on a disk that takes its time, and a directory that may be lost.
        Setting {
            ticks: depth.of(6, 5),
            faults: 2,
            kinds: &[Crash, Lose, Delete, Release, Doubt],
            epochs: EpochOrigin::Clock,
            has_history: true,
            reclaim: true,
            shows: &[Reached::Takeover, Reached::Release],
            ..Setting::new("crashes", &[3, 3], 3)?
        },
        // T = 10 R, with clocks that are as far apart as is allowed for.
        Setting {
            rates: vec![92, 108],
            wall_rate: 50,
            ticks: depth.of(20, 18),
            faults: depth.of(2, 1),
            kinds: &[Pause, Cut, DelayAnswer],
            writes: 40,
            shows: &[Reached::Takeover],
            ..Setting::new("drift", &[10, 10], 10)?
        },
        // Instances of unequal T.
        Setting {
            ticks: 9,
            faults: depth.of(2, 1),
            kinds: &[Pause, Delete, Lose, DelayAnswer],
            epochs: EpochOrigin::Clock,
            shows: &[Reached::Takeover],
            ..Setting::new("unequal", &[6, 3], 6)?
        },
        // The same, where the smaller one was not told of the larger.
        Setting {
            ticks: depth.of(14, 12),
            faults: depth.of(2, 1),
            kinds: &[Pause, DelayAnswer, Doubt],
            shows: &[Reached::Takeover],
            ..Setting {
                timings: vec![timing(6)?, timing(3)?],
                ..Setting::new("untold", &[3, 3], 3)?
            }
        },
        // Suspends that only the wall clock shows.
        Setting {
            ticks: 9,
            faults: depth.of(2, 1),
            kinds: &[Suspend, Pause, Doubt, DelayAnswer],
            shows: &[Reached::Takeover],
            ..Setting::new("suspend", &[4, 4], 4)?
        },
        // Older records that come back.
        Setting {
            ticks: 8,
            faults: depth.of(2, 1),
            kinds: &[PutBack, Release, Cut, Lose],
            epochs: EpochOrigin::Clock,
            shows: &[Reached::Release],
            ..Setting::new("put back", &[3, 3], 3)?
        },
    ])
}
