//! What may go wrong in a world, and the sizes that a world is built with.

use super::dice::Dice;
use crate::{
    machine::EpochOrigin,
    timing::{Timing, TimingError},
};
use std::time::Duration;

/// A kind of thing that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Hazard {
    /// The application gives up takeovers, releases and drops its tenures, and stops wanting them.
    Application,
    /// An instance directory is copied while its owner runs, and a second host starts from it.
    Clone,
    /// A process dies and is started again.
    Crash,
    /// The lease is deleted by hand, at times twice in a row.
    Delete,
    /// The instance's directory cannot be written, or hangs.
    Disk,
    /// The epoch floor cannot be told.
    Floor,
    /// The lease is replaced by a record that was signed with another secret, of the largest epoch.
    Forge,
    /// The lease is replaced by bytes that are no record.
    Garbage,
    /// Writes land long after they were reported as failed.
    Late,
    /// Answers get lost, also of writes that were applied; requests overtake each other.
    Link,
    /// A process dies and is started again without its history, under a new id.
    LostHistory,
    /// The store answers 5xx or nothing to everybody.
    Outage,
    /// One host does not reach the store.
    Partition,
    /// A process stands still, its clocks go on.
    Pause,
    /// An older record of the cluster is put back, held or released.
    PutBack,
    /// A monotonic clock changes its rate.
    Rate,
    /// A host is suspended, and its monotonic clock does not count meanwhile.
    Suspend,
    /// Wall clocks are set by up to three hours, forward and back.
    Wall,
}

impl Hazard {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Application,
        Self::Clone,
        Self::Crash,
        Self::Delete,
        Self::Disk,
        Self::Floor,
        Self::Forge,
        Self::Garbage,
        Self::Late,
        Self::Link,
        Self::LostHistory,
        Self::Outage,
        Self::Partition,
        Self::Pause,
        Self::PutBack,
        Self::Rate,
        Self::Suspend,
        Self::Wall,
    ];
}

/// Which hazards a world has.
///
/// A world in which everything happens all the time shows less than many in which a few things
/// happen: from what is allowed, each seed draws a part (*swarm testing*).
///
/// ```
/// use lease_core::testing::sim::{Hazard, Hazards};
///
/// let calm = Hazards::none().with(Hazard::Crash).with(Hazard::Pause);
/// assert!(calm.has(Hazard::Crash) && !calm.has(Hazard::Delete));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hazards {
    bits: u32,
}

impl Hazards {
    /// Nothing goes wrong.
    #[must_use]
    pub const fn none() -> Self {
        Self { bits: 0 }
    }

    /// Everything may go wrong.
    #[must_use]
    pub fn all() -> Self {
        Hazard::ALL.into_iter().fold(Self::none(), Self::with)
    }

    /// The same with one more.
    #[must_use]
    pub const fn with(self, hazard: Hazard) -> Self {
        Self { bits: self.bits | 1 << hazard as u32 }
    }

    /// The same without one.
    #[must_use]
    pub const fn without(self, hazard: Hazard) -> Self {
        Self { bits: self.bits & !(1 << hazard as u32) }
    }

    /// Whether this may go wrong.
    #[must_use]
    pub const fn has(self, hazard: Hazard) -> bool {
        self.bits & 1 << hazard as u32 != 0
    }

    /// A part of these: each kind with a chance that is itself drawn.
    fn drawn(self, dice: &mut Dice) -> Self {
        let chance = *dice.pick(&[150, 300, 600, 900]).unwrap_or(&300);
        let mut drawn = self;
        for hazard in Hazard::ALL {
            if !dice.chance(chance) {
                drawn = drawn.without(hazard);
            }
        }
        drawn
    }
}

impl Default for Hazards {
    fn default() -> Self {
        Self::all()
    }
}

/// What one world is built of: drawn from its seed, or given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The timing of each instance. More than two instances stand by for one lease as well.
    pub instances: Vec<Timing>,
    /// What goes wrong in this world.
    pub hazards: Hazards,
    /// How often something goes wrong, at the mean.
    pub hazard_every: Duration,
    /// How long things go wrong. Then comes peace, and with it the claim that somebody is active.
    pub hazardous: Duration,
    /// How long peace is watched.
    pub peace: Duration,
    /// The cluster has a secret.
    pub secret: bool,
    /// An epoch floor is asked, and told from what was ever open.
    pub floor: bool,
    /// A restarted process takes back what it held.
    pub reclaim: bool,
    /// Standbys read right behind the holder's renewals.
    pub phase_lock: bool,
    /// The store tells how old a version is.
    pub tells_age: bool,
    /// Where epochs come from.
    pub epochs: EpochOrigin,
    /// How far monotonic clocks may be off, in millionths. The margin covers 8 %.
    pub rate_ppm: u64,
    /// How far wall clocks are off from the start.
    pub wall_offset: Duration,
}

impl Setting {
    /// A world of `instances` instances with one timing, its hazards and sizes drawn from the dice.
    #[must_use]
    pub fn uniform(instances: usize, timing: Timing, allowed: Hazards, dice: &mut Dice) -> Self {
        Self::around(vec![timing; instances.max(1)], allowed, dice)
    }

    /// A world of 2 to 4 instances, T from 2.2 R to 20 R, in a third of the worlds not the same for
    /// all.
    #[must_use]
    pub fn drawn(allowed: Hazards, dice: &mut Dice) -> Self {
        let count = *dice.pick(&[2, 2, 3, 3, 3, 4]).unwrap_or(&2);
        let is_mixed = dice.one_in(3);
        let ratio = ratio(dice);
        let mut sizes = Vec::new();
        for _ in 0..count {
            let ttl = match is_mixed {
                true => *dice.pick(&[4_000, 10_000, 20_000]).unwrap_or(&10_000),
                false => 10_000,
            };
            let ratio = if is_mixed { self::ratio(dice) } else { ratio };
            sizes.push((Duration::from_millis(ttl), Duration::from_millis(ttl * 10 / ratio)));
        }
        let largest = sizes.iter().map(|(ttl, _)| *ttl).max().unwrap_or_default();
        // Where no lease is displaced, its record tells its ttl, and nobody need know the largest.
        let is_told = !is_mixed || !dice.one_in(4);
        let timing = |(ttl, renew)| match is_told {
            true => Timing::short(ttl, renew)?.with_max_cluster_ttl(largest),
            false => Timing::short(ttl, renew),
        };
        let timings: Result<Vec<_>, TimingError> = sizes.into_iter().map(timing).collect();
        let allowed = DISPLACING.into_iter().fold(allowed, |allowed, hazard| match is_told {
            true => allowed,
            false => allowed.without(hazard),
        });
        // None of the sizes above is one that is refused.
        Self::around(timings.unwrap_or_else(|_| vec![Timing::default(); 2]), allowed, dice)
    }

    /// Everything else, so that no world promises what the protocol does not (see the module).
    fn around(instances: Vec<Timing>, allowed: Hazards, dice: &mut Dice) -> Self {
        let mut hazards = allowed.drawn(dice);
        if hazards.has(Hazard::PutBack) && dice.one_in(2) {
            // An old record does harm where there are releases, and hosts that know little.
            for hazard in [Hazard::Application, Hazard::LostHistory, Hazard::Partition] {
                hazards = if allowed.has(hazard) { hazards.with(hazard) } else { hazards };
            }
        }
        let (mut floor, mut reclaim) = (dice.one_in(3), dice.one_in(3));
        let is_displaced = DISPLACING.into_iter().any(|hazard| hazards.has(hazard));
        // Epochs that no process has seen are told apart by the clock, or else by the floor.
        let mut epochs = EpochOrigin::Clock;
        if hazards.has(Hazard::Wall) {
            floor |= is_displaced;
        } else if dice.one_in(3) {
            epochs = EpochOrigin::Counter;
            floor |= is_displaced;
        }
        if hazards.has(Hazard::PutBack) {
            // What is put back while another holds it looks like the latest word after a restart,
            // and a clock that stands still in a suspend does not show that something came and went.
            reclaim = false;
            hazards = hazards.without(Hazard::Suspend);
        }
        if hazards.has(Hazard::Suspend) {
            // A suspend that only the wall clock shows is not shown by one that is set back.
            hazards = hazards.without(Hazard::Wall);
        }
        let ttl = instances.iter().map(Timing::ttl).max().unwrap_or_default();
        let pace = u32::try_from(1 + dice.below(6)).unwrap_or(1);
        Self {
            hazards,
            hazard_every: ttl / pace / 2,
            hazardous: ttl * 9,
            peace: ttl * 3,
            secret: dice.one_in(2),
            floor,
            reclaim,
            phase_lock: !dice.one_in(4),
            tells_age: dice.one_in(3),
            epochs,
            rate_ppm: *dice.pick(&[0, 1_000, 50_000, 80_000]).unwrap_or(&0),
            wall_offset: Duration::from_millis(400),
            instances,
        }
    }

    /// The rate of a monotonic clock, in millionths: as often as not as far off as it may be.
    pub(super) fn rate(&self, dice: &mut Dice) -> u64 {
        let most = self.rate_ppm;
        1_000_000 - most
            + match dice.below(4) {
                0 => 0,
                1 => 2 * most,
                _ => dice.below(2 * most + 1),
            }
    }

    /// The largest T of the world.
    #[must_use]
    pub fn largest_ttl(&self) -> Duration {
        self.instances.iter().map(Timing::ttl).max().unwrap_or_default()
    }

    /// The largest R of the world.
    #[must_use]
    pub fn largest_renew(&self) -> Duration {
        self.instances.iter().map(Timing::renew).max().unwrap_or_default()
    }
}

/// What makes a lease disappear from under its holder.
pub(super) const DISPLACING: [Hazard; 4] =
    [Hazard::Delete, Hazard::Garbage, Hazard::Forge, Hazard::PutBack];

/// Ten times T over R.
fn ratio(dice: &mut Dice) -> u64 {
    *dice.pick(&[22, 30, 30, 30, 50, 100, 120, 200]).unwrap_or(&30)
}
