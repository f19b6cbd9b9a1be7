//! The sizes that a world of sessions is built with, and what it does not do together.

use super::super::{
    dice::Dice,
    hazards::{DISPLACING, Hazard, Hazards, Setting as Sizes},
};
use crate::{machine::EpochOrigin, timing::Timing};
use std::time::Duration;

/// What one world is built of: drawn from its seed, or given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The hosts, their timing and clocks, what goes wrong and for how long: as for a single lease.
    /// No epoch floor is asked in it. How long peace is watched is [`Setting::peace`].
    pub world: Sizes,
    /// How many leases there are, 1 to 6.
    pub names: usize,
    /// A, if the cluster audits.
    pub audit: Option<Duration>,
    /// How many requests each session has under way at most, beside those that keep it.
    pub max_in_flight: usize,
    /// How many leases of others each session looks at per R.
    pub looks_per_renew: usize,
    /// Whoever releases a lease keeps out of it for 2R.
    pub keep_out: bool,
    /// Applications want something else about once in so many times that they look at their leases: with
    /// little patience much is under way at once, with much of it tenures last long.
    pub patience: u64,
    /// The id of a process that starts without a history was generated just then.
    pub fresh: bool,
}

impl Setting {
    /// A world of 2 to 4 hosts and 1 to 6 leases. With `timing` every host has that; otherwise T is from
    /// 2.2 R to 20 R, in a third of the worlds not the same for all.
    #[must_use]
    pub fn drawn(allowed: Hazards, timing: Option<Timing>, dice: &mut Dice) -> Self {
        let allowed = allowed.without(Hazard::Floor);
        let world = match timing {
            None => Sizes::drawn(allowed, dice),
            Some(timing) => {
                let count = *dice.pick(&[2, 2, 3, 3, 3, 4]).unwrap_or(&2);
                Sizes::uniform(count, timing, allowed, dice)
            }
        };
        let every = *dice.pick(&[1, 2, 4]).unwrap_or(&1);
        let audit = dice.one_in(2).then(|| world.largest_renew() * every);
        Self {
            world: promised(world, dice),
            names: *dice.pick(&[1, 1, 2, 3, 4, 6]).unwrap_or(&1),
            audit,
            max_in_flight: *dice.pick(&[1, 2, 4, 32]).unwrap_or(&32),
            looks_per_renew: *dice.pick(&[1, 4, 32]).unwrap_or(&32),
            keep_out: !dice.one_in(8),
            patience: *dice.pick(&[1, 1, 3, 12]).unwrap_or(&1),
            fresh: dice.one_in(2),
        }
    }

    /// Within this from the beginning of peace every lease that is wanted is held with an open fence:
    ///
    /// - One's own session is live after at most T + 2R: what stands there is read within R, waited out
    ///   or taken held back for W = T, and its fence is opened R/10 and a few requests later.
    /// - The session of a holder that is gone is read within R, and found missing in the worst case: a
    ///   tombstone is put there, is waited out for W, and R/10 of spread later it is killed; the lease
    ///   is taken another R/10 later. A lease that cannot be believed is waited out for W as well, and
    ///   so is not slower. That makes T + 2R.
    /// - Between the two, and behind it, each look at a lease comes within `Setting::look`.
    /// - With audit it may have been taken held back, for A + R and T or a fifth of that.
    ///
    /// All of it is measured on clocks that may be slow.
    #[must_use]
    pub fn owned_within(&self) -> Duration {
        let (ttl, renew) = (self.world.largest_ttl(), self.world.largest_renew());
        let held_back = |audit| audit + renew + ttl.max((audit + renew) / 5);
        let held_back = self.audit.map_or(Duration::ZERO, held_back);
        self.slowed((ttl + renew * 2) * 2 + self.look() * 2 + held_back)
    }

    /// Within this a lease that is released in peace is held by the next: whoever waits looks at it within
    /// `Setting::look`, and takes it with one write and R/10 of spread. If nobody else waits for it,
    /// it is taken again after 2R of keeping out.
    #[must_use]
    pub fn handed_over_within(&self) -> Duration {
        self.slowed(self.look() + self.world.largest_renew() * 3)
    }

    /// Each lease that is waited for is looked at this often: once per R, or in turn if there are more
    /// of them than [`Setting::looks_per_renew`]; a look takes its own time on top.
    fn look(&self) -> Duration {
        let rounds = self.names.div_ceil(self.looks_per_renew.max(1));
        self.world.largest_renew() * u32::try_from(rounds + 1).unwrap_or(u32::MAX)
    }

    /// How long peace is watched: until every lease is owned, was given back once, and is owned again.
    #[must_use]
    pub fn peace(&self) -> Duration {
        self.owned_within() + self.world.largest_renew() * 3 + self.handed_over_within()
    }

    fn slowed(&self, bound: Duration) -> Duration {
        bound * 1_000_000
            / u32::try_from(1_000_000_u64.saturating_sub(self.world.rate_ppm)).unwrap_or(1)
    }
}

/// Leaves out what is not promised together (see the [module](super)).
fn promised(mut world: Sizes, dice: &mut Dice) -> Sizes {
    world.floor = false;
    world.hazardous = world.largest_ttl() * 7;
    let is_displaced = |hazards: Hazards| DISPLACING.into_iter().any(|it| hazards.has(it));
    if is_displaced(world.hazards) {
        // What nobody has seen is told apart by the clock alone: no floor is asked for a lease.
        world.epochs = EpochOrigin::Clock;
        if world.hazards.has(Hazard::Wall) {
            world.hazards = match dice.one_in(2) {
                true => world.hazards.without(Hazard::Wall),
                false => DISPLACING.into_iter().fold(world.hazards, Hazards::without),
            };
        }
    }
    world
}
