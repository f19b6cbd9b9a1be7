//! When to read: shortly after the holder's next renewal is expected (protocol, section 8).
//!
//! A standby that reads at any moment sees a new version up to R after it was written, and takes over
//! that much later. So it looks for the phase of the holder's renewals, and stays right behind them.
//!
//! ```text
//!  scanning:  renewals  w─────────w─────────w─────────w──    every R
//!             reads      n────────n────────n────────o n      every 11/12 R: each comes R/12 closer to
//!                                                            the write before it, until one is too
//!                                                            early (o). The next write is at most R/12
//!                                                            away then; one extra read finds it (n)
//!  locked:    renewals  w─────────w─────────w─────────w──
//!             reads     ▲n        ▲n        ▲n        on     a little earlier each time, until one is
//!                                                            too early; one extra read, and on from
//!                                                            R/20 behind the write
//! ```
//!
//! No two reads are more than R apart, but for what a locked standby has learned of a holder whose
//! renewals come later than every R. There are at most 1.1 reads per R, taken over some time: an extra
//! one has to be saved up for. It says only *when to read*: a wrong phase costs time, never safety.

use crate::timing::Timing;
use fencing::MonotonicTime;
use std::time::Duration;

/// From this R on, an age in whole seconds tells the phase well enough.
const LONG_RENEW: Duration = Duration::from_secs(20);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Phase {
    mode: Mode,
    last_sent: Option<MonotonicTime>,
    /// By how much later than allowed the reads have come so far: what extra ones are paid with.
    saved: Duration,
    /// By how much the holder's renewals are taken to be further apart than R.
    slower: Duration,
    /// New versions seen in a row since a read came too early.
    in_a_row: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Mode {
    /// Reads come closer and closer to the writes. When the answer to the last read was held, if
    /// that showed a new version.
    Scanning(Option<MonotonicTime>),
    /// Reads come right behind the writes.
    Locked,
    /// A read came too early; the extra one that follows is to show the new version.
    Early { sent: MonotonicTime, was_locked: bool },
}

impl Phase {
    pub(super) fn new(timing: &Timing) -> Self {
        Self {
            mode: Mode::Scanning(None),
            last_sent: None,
            saved: timing.renew(),
            slower: Duration::ZERO,
            in_a_row: 0,
        }
    }

    /// Nothing is renewed that could have a phase.
    pub(super) fn lose(&mut self) {
        self.mode = Mode::Scanning(None);
    }

    /// How long before a read a version that it shows first was written at most, if that is known
    /// better than from when the read before was sent.
    pub(super) fn lag(&self, timing: &Timing) -> Option<Duration> {
        match &self.mode {
            Mode::Scanning(_) => None,
            Mode::Locked | Mode::Early { .. } => Some(timing.renew() / 10),
        }
    }

    /// A read was sent and answered; did it show a new version, and how old? Returns when to send
    /// the next.
    pub(super) fn next_read(
        &mut self,
        timing: &Timing,
        sent: MonotonicTime,
        held: MonotonicTime,
        is_new: bool,
        age: Option<Duration>,
    ) -> MonotonicTime {
        let renew = timing.renew();
        if let Some(before) = self.last_sent.replace(sent) {
            let saved = (self.saved + (sent - before)).saturating_sub(renew * 10 / 11);
            self.saved = saved.min(renew * 3);
        }
        let due = match is_new {
            true => self.saw_new(timing, sent, held, age),
            false => self.saw_old(timing, sent),
        };
        let slower = if self.mode == Mode::Locked { self.slower } else { Duration::ZERO };
        due.max(sent + timing.retry()).min(sent + renew + slower)
    }

    /// How long after one read the next one is sent while nothing is known.
    pub(super) fn scan(timing: &Timing) -> Duration {
        timing.renew() - timing.renew() / 12
    }

    fn saw_new(
        &mut self,
        timing: &Timing,
        sent: MonotonicTime,
        held: MonotonicTime,
        age: Option<Duration>,
    ) -> MonotonicTime {
        let renew = timing.renew();
        match self.mode {
            Mode::Locked => return sent + self.pace(renew),
            Mode::Early { sent: early, was_locked } => {
                self.mode = Mode::Locked;
                let behind = if was_locked { renew / 20 } else { renew / 11 };
                return early + renew + behind;
            }
            Mode::Scanning(_) => {}
        }
        if let Some(age) = age.filter(|_| renew >= LONG_RENEW) {
            let next = held - age + renew + renew / 20;
            if self.affords(timing, next - sent) {
                self.mode = Mode::Locked;
                return next;
            }
        }
        self.mode = Mode::Scanning(Some(held));
        sent + Self::scan(timing)
    }

    fn saw_old(&mut self, timing: &Timing, sent: MonotonicTime) -> MonotonicTime {
        let renew = timing.renew();
        let (is_expected, was_locked) = match self.mode {
            // What the read before showed was written before it was answered.
            Mode::Scanning(Some(shown)) => (sent < shown + renew, false),
            Mode::Locked => (true, true),
            // It is overdue: delayed, or its holder is gone.
            Mode::Scanning(None) | Mode::Early { .. } => (false, false),
        };
        if was_locked {
            if self.in_a_row < 8 {
                // Too early again so soon: the renewals are further apart than they were taken to be.
                self.slower = (self.slower + renew / 500).min(renew / 12);
            }
            self.in_a_row = 0;
        }
        if is_expected && self.affords(timing, timing.retry()) {
            self.mode = Mode::Early { sent, was_locked };
            return sent + timing.retry();
        }
        self.mode = Mode::Scanning(None);
        sent + Self::scan(timing)
    }

    /// How long after one read the next one is sent while locked: a little less than the renewals
    /// are apart.
    fn pace(&mut self, renew: Duration) -> Duration {
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row > 16 {
            self.slower = self.slower.saturating_sub(renew / 2_000);
        }
        renew - renew / 250 + self.slower
    }

    /// Whether a read so soon after the one before is within 1.1 reads per R.
    fn affords(&self, timing: &Timing, interval: Duration) -> bool {
        self.saved + interval >= timing.renew() * 10 / 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Duration = Duration::from_millis(1_000);
    /// 1.1, and the one extra read that every standby starts with.
    const MOST: f64 = 1.1 + 2.0 / 500.0;

    fn timing() -> Timing {
        Timing::short(Duration::from_millis(3_000), R).unwrap()
    }

    /// Reads for `rounds` of the holder's renewals, which come every R + `late`; each read takes
    /// 2 ms. Returns reads per R and the median time from a write to the read that shows it.
    fn watch(start: u64, late: impl Fn(u64) -> Duration, rounds: u64) -> (f64, Duration) {
        let mut writes = vec![MonotonicTime::from_nanos(1_000_000_000 + start * 1_000_000)];
        for round in 0..rounds {
            let last = *writes.last().unwrap();
            writes.push(last + R + late(round));
        }
        let (mut phase, mut reads, mut lags) = (Phase::new(&timing()), 0_u32, Vec::new());
        let mut now = MonotonicTime::from_nanos(1_000_000_000);
        let (mut seen, end) = (0, *writes.last().unwrap());
        while now < end {
            let arrived = now + Duration::from_millis(1);
            let newest = writes.iter().rposition(|write| *write <= arrived);
            let is_new = newest.is_some_and(|newest| newest + 1 > seen);
            if is_new {
                seen = newest.unwrap() + 1;
                lags.push(arrived - writes[seen - 1]);
            }
            let due =
                phase.next_read(&timing(), now, arrived + Duration::from_millis(1), is_new, None);
            assert!(due > now && due <= now + R + R / 12, "next read {:?} later", due - now);
            now = due;
            reads += 1;
        }
        // The search is over after a dozen rounds.
        let mut settled = lags.split_off(lags.len().min(12));
        settled.sort();
        let spans = (end - writes[0]).as_secs_f64() / R.as_secs_f64();
        let cost = f64::from(reads) / spans;
        println!("{cost:.3} reads per R, median {:?}", settled[settled.len() / 2]);
        (cost, settled[settled.len() / 2])
    }

    #[test]
    fn reads_come_right_behind_the_renewals_and_cost_a_tenth_more_at_most() {
        for start in (0..1_000).step_by(37) {
            for late in [0, 1, 3] {
                let (cost, lag) = watch(start, |_| Duration::from_millis(late), 500);
                assert!(cost <= MOST, "{cost} reads per R from {start}, {late} ms late");
                assert!(lag <= R / 15, "{lag:?} behind, from {start}, {late} ms late");
            }
        }
    }

    /// Its writes cannot be foretold; the reads are no worse then than ones at any moment.
    #[test]
    fn a_holder_that_is_irregular_costs_no_more() {
        let irregular = |round: u64| Duration::from_millis((round * 7_919) % 60);
        let (cost, lag) = watch(300, irregular, 1_000);
        assert!(cost <= MOST, "{cost} reads per R");
        assert!(lag <= R / 2, "{lag:?}");
    }

    #[test]
    fn a_holder_with_another_interval_costs_no_more() {
        for late in [500, 1_000, 5_000] {
            let (cost, _) = watch(0, |_| Duration::from_millis(late), 500);
            assert!(cost <= MOST, "{cost} reads per R at {late} ms late");
        }
    }
}
