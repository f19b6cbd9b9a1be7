//! Two ways measured in turn, so that what a busy disk or machine does to one it does to both.

use crate::clocks;
use std::{fmt, time::Duration};

/// How long each run of two ways took.
#[derive(Clone, Debug)]
pub struct Pairs {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
}

/// Runs both in turn, by a clock.
pub fn run(pairs: usize, ours: impl FnMut(), bare: impl FnMut()) -> Pairs {
    run_by(clocks::elapsed, pairs, ours, bare)
}

/// Runs both in turn, by the time that `now` tells.
pub fn run_by(
    now: impl Fn() -> Duration,
    pairs: usize,
    ours: impl FnMut(),
    bare: impl FnMut(),
) -> Pairs {
    let (mut ours, mut bare) = (Timed::new(pairs, ours, &now), Timed::new(pairs, bare, &now));
    for pair in 0..pairs {
        // Neither is always the first after the other.
        if pair % 2 == 0 {
            ours.run();
            bare.run();
        } else {
            bare.run();
            ours.run();
        }
    }
    Pairs { ours: sorted(ours.took), bare: sorted(bare.took) }
}

/// `act` so many times: one run of what is too short for a clock.
pub fn times<T>(count: u32, mut act: impl FnMut() -> T) -> impl FnMut() {
    move || {
        for _ in 0..count {
            std::hint::black_box(act());
        }
    }
}

impl Pairs {
    /// Our time in parts of the bare one, by the medians.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ratio_at(50)
    }

    /// Our time in parts of the bare one, at that percentile of both.
    #[must_use]
    pub fn ratio_at(&self, percent: usize) -> f64 {
        let [ours, bare] = self.at(percent);
        ours.as_secs_f64() / bare.as_secs_f64()
    }

    /// Our time and the bare one that `percent` of the runs stayed below.
    #[must_use]
    pub fn at(&self, percent: usize) -> [Duration; 2] {
        [&self.ours, &self.bare].map(|took| took[took.len() * percent / 100])
    }

    /// Our throughput in parts of the bare one, by the medians.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.ratio().recip()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ours.len()
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ours, bare] = self.at(50);
        write!(f, "ratio {:.2} (median of {} pairs), ", self.ratio(), self.count())?;
        // Where others make the disk wait the median hides what we add; a low percentile does not.
        write!(f, "{ours:.1?} beside {bare:.1?}; {:.2} at the 10th percentile", self.ratio_at(10))
    }
}

fn sorted(mut took: Vec<Duration>) -> Vec<Duration> {
    took.sort_unstable();
    took
}

struct Timed<'n, F, N> {
    act: F,
    now: &'n N,
    took: Vec<Duration>,
}

impl<'n, F: FnMut(), N: Fn() -> Duration> Timed<'n, F, N> {
    fn new(times: usize, act: F, now: &'n N) -> Self {
        Self { act, now, took: Vec::with_capacity(times) }
    }

    fn run(&mut self) {
        let started = (self.now)();
        (self.act)();
        self.took.push((self.now)().saturating_sub(started));
    }
}
