//! Chance that can be repeated: everything that a simulation draws comes from one seed.

use std::time::Duration;

/// A generator of numbers (SplitMix64). The same seed gives the same numbers on every machine.
///
/// ```
/// use lease_core::testing::sim::Dice;
///
/// let (mut a, mut b) = (Dice::new(7), Dice::new(7));
/// assert_eq!(a.below(1_000), b.below(1_000));
/// ```
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice that roll what `seed` says.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` − 1; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias of the remainder is far below what any schedule could show.
        self.roll().checked_rem(end).unwrap_or(0)
    }

    /// Other dice, which roll on their own.
    pub(super) fn clone_apart(&mut self) -> Self {
        Self::new(self.roll())
    }

    /// True once in `sides` times.
    pub fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// One of `these`; `None` only if there are none.
    pub fn pick<'a, T>(&mut self, these: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(these.len()).unwrap_or(u64::MAX);
        these.get(usize::try_from(self.below(count)).unwrap_or(0))
    }

    /// A time from zero to `most`, every one alike.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// How late a timer runs: by a little as a rule, now and then by a lot.
    pub(super) fn late_timer(&mut self, renew: Duration, is_peaceful: bool) -> Duration {
        let most = match !is_peaceful && self.one_in(300) {
            true => renew * 2,
            false => renew / 50,
        };
        // To the nanosecond, too: what is half-open has to show.
        if self.one_in(4) { Duration::ZERO } else { self.of_any_size(most) }
    }

    /// A time from zero to `most` of any order of magnitude: half of them below `most` / 16, a
    /// quarter below `most` / 256.
    pub fn of_any_size(&mut self, most: Duration) -> Duration {
        let halvings = u32::try_from(self.below(9)).unwrap_or(0);
        self.up_to(most / (1 << halvings))
    }
}
