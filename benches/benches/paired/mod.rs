//! Two ways measured in turn, so that what a busy disk or machine does to one it does to both.

use fencing::{Clock as _, SystemClock};
use std::{fmt, time::Duration};

/// How long each run of two ways took.
pub(crate) struct Pairs {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
}

/// Runs both in turn, by a clock.
#[allow(dead_code, reason = "some benches wait for a disk, some compute")]
pub(crate) fn run(pairs: usize, ours: impl FnMut(), bare: impl FnMut()) -> Pairs {
    let clock = SystemClock::new();
    let origin = clock.monotonic();
    run_by(|| clock.monotonic() - origin, pairs, ours, bare)
}

/// Runs both in turn, by the time that `now` tells.
pub(crate) fn run_by(
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

impl Pairs {
    /// Our time and the bare one that `percent` of the runs stayed below.
    fn at(&self, percent: usize) -> [Duration; 2] {
        [&self.ours, &self.bare].map(|took| took[took.len() * percent / 100])
    }
}

impl Pairs {
    /// Our throughput in parts of the bare one, by the medians.
    #[allow(dead_code, reason = "not every bench moves bytes")]
    pub(crate) fn throughput(&self) -> f64 {
        let [ours, bare] = self.at(50);
        bare.as_secs_f64() / ours.as_secs_f64()
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |[ours, bare]: [Duration; 2]| ours.as_secs_f64() / bare.as_secs_f64();
        let (median, quick) = (self.at(50), self.at(10));
        let [ours, bare] = median;
        write!(f, "ratio {:.2} (median of {} pairs), ", ratio(median), self.ours.len())?;
        // Where others make the disk wait the median hides what we add; a low percentile does not.
        write!(f, "{ours:.1?} beside {bare:.1?}; {:.2} at the 10th percentile", ratio(quick))
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
