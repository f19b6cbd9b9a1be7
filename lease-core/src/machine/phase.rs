//! When to read: shortly after the holder's next renewal is expected (protocol, section 8).
//!
//! A standby that reads at any moment sees a new version up to R after it was written, and takes over
//! that much later. So it looks for the phase of the holder's renewals. The version that it saw last
//! was written within a window: after the last read that did not show it was sent, and before the
//! first that did was answered. The next one is expected R later.
//!
//! ```text
//!  searching:  ──(after──────────────until]──   read in the middle of where the next is expected:
//!                          ▲                    each answer halves the window
//!  locked:     ───────────────────write─▲──     read a little earlier each time, until one comes too
//!                                               early; then once more, R/10 later, and R/20 later
//!                                               than that one from then on
//! ```
//!
//! A read that comes sooner than R after the one before has to be paid for: no more than 1.1 reads
//! per R, taken over some time. It says only *when to read*: a wrong phase costs time, never safety.

use crate::timing::Timing;
use fencing::MonotonicTime;
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Phase {
    mode: Mode,
    last_sent: Option<MonotonicTime>,
    /// By how much later than allowed the reads have come so far: what early ones are paid with.
    saved: Duration,
    /// By how much the holder's renewals are taken to be further apart than R.
    slower: Duration,
    /// New versions seen in a row since a read came too early.
    in_a_row: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Mode {
    /// Nothing is known.
    Lost,
    /// The last version was written within a window.
    Searching(Window),
    /// Reads come right behind the writes.
    Locked,
    /// A read came too early; the one that follows it soon is to show the new version. Locked or
    /// searching within the window.
    Early { sent: MonotonicTime, window: Option<Window> },
}

/// When the version that was seen last was written: after the one, at the other at the latest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Window {
    after: MonotonicTime,
    until: MonotonicTime,
}

impl Window {
    fn width(self) -> Duration {
        self.until - self.after
    }

    /// What both allow, if that is anything.
    fn within(self, other: Self) -> Option<Self> {
        let after = self.after.max(other.after);
        let until = self.until.min(other.until);
        (after < until).then_some(Self { after, until })
    }
}

impl Phase {
    pub(super) fn new(timing: &Timing) -> Self {
        Self {
            mode: Mode::Lost,
            last_sent: None,
            saved: timing.renew(),
            slower: Duration::ZERO,
            in_a_row: 0,
        }
    }

    /// Nothing is renewed that could have a phase.
    pub(super) fn lose(&mut self) {
        self.mode = Mode::Lost;
        self.last_sent = None;
    }

    /// How far behind a write a read is expected to come, once that is known.
    pub(super) fn uncertainty(&self, timing: &Timing) -> Option<Duration> {
        match &self.mode {
            Mode::Lost => None,
            Mode::Searching(window) | Mode::Early { window: Some(window), .. } => {
                Some(window.width()).filter(|width| *width < timing.renew() / 2)
            }
            Mode::Locked | Mode::Early { window: None, .. } => Some(timing.renew() / 20),
        }
    }

    /// A read was sent and answered; did it show a new version? Returns when to send the next.
    pub(super) fn next_read(
        &mut self,
        timing: &Timing,
        sent: MonotonicTime,
        held: MonotonicTime,
        is_new: bool,
        age: Option<Duration>,
    ) -> MonotonicTime {
        let renew = timing.renew();
        let before = self.last_sent.replace(sent);
        if let Some(before) = before {
            let allowed = (self.saved + (sent - before)).saturating_sub(renew * 11 / 12);
            self.saved = allowed.min(renew * 5);
        }
        let due = match is_new {
            true => self.saw_new(timing, before, sent, held, age),
            false => self.saw_old(timing, sent),
        };
        // No two reads are more than 1.1 R apart.
        due.max(sent + timing.retry()).min(sent + renew + timing.retry())
    }

    /// Whether a read so soon after the one before is within 1.1 reads per R.
    fn affords(&self, timing: &Timing, interval: Duration) -> bool {
        self.saved + interval >= timing.renew() * 11 / 12
    }

    fn saw_new(
        &mut self,
        timing: &Timing,
        before: Option<MonotonicTime>,
        sent: MonotonicTime,
        held: MonotonicTime,
        age: Option<Duration>,
    ) -> MonotonicTime {
        let renew = timing.renew();
        match self.mode.clone() {
            Mode::Locked => return sent + self.pace(renew),
            Mode::Early { sent: early, window: None } => {
                self.mode = Mode::Locked;
                return early + renew + renew / 20;
            }
            Mode::Lost | Mode::Searching(_) | Mode::Early { .. } => {}
        }
        // Without a read before, all that is known is that it is there.
        let mut shown = Window { after: before.unwrap_or(held - renew), until: held };
        if let Some(age) = age {
            // It has whole seconds, and says the least.
            let after = sent - age - Duration::from_secs(2);
            shown = shown.within(Window { after, until: held - age }).unwrap_or(shown);
        }
        let slack = renew / 100;
        let expected = match self.mode {
            Mode::Searching(last) | Mode::Early { window: Some(last), .. } => {
                let (after, until) = (last.after + renew - slack, last.until + renew + slack);
                Some(Window { after, until })
            }
            Mode::Lost | Mode::Locked | Mode::Early { window: None, .. } => None,
        };
        let window = expected.and_then(|it| shown.within(it)).unwrap_or(shown);
        if window.width() <= renew / 16 {
            self.mode = Mode::Locked;
            return sent + self.pace(renew);
        }
        self.mode = Mode::Searching(window);
        let middle = window.after + window.width() / 2 + renew;
        if self.affords(timing, middle - sent) { middle } else { sent + renew }
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

    fn saw_old(&mut self, timing: &Timing, sent: MonotonicTime) -> MonotonicTime {
        let renew = timing.renew();
        // Without means for an extra read, the next one comes later instead.
        let later = sent + renew + timing.retry();
        if self.mode == Mode::Locked {
            if self.in_a_row < 8 {
                // Too early again so soon: the renewals are further apart than they were taken to be.
                self.slower = (self.slower + renew / 500).min(renew / 12);
            }
            self.in_a_row = 0;
        }
        match self.mode {
            Mode::Locked if !self.affords(timing, timing.retry()) => later,
            Mode::Locked => {
                self.mode = Mode::Early { sent, window: None };
                sent + timing.retry()
            }
            Mode::Searching(window) if sent <= window.until + renew => {
                let window = Window { after: window.after.max(sent - renew), ..window };
                if !self.affords(timing, (window.until + renew) - sent) {
                    self.mode = Mode::Searching(window);
                    return later;
                }
                self.mode = Mode::Early { sent, window: Some(window) };
                (window.until + renew).max(sent + timing.retry())
            }
            // It is overdue: delayed, or its holder is gone. The search begins anew.
            Mode::Searching(_) | Mode::Early { .. } | Mode::Lost => {
                self.mode = Mode::Lost;
                sent + renew
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Duration = Duration::from_millis(1_000);

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
            assert!(due > now && due <= now + R + R / 10, "next read {:?} later", due - now);
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
                assert!(cost <= 1.1, "{cost} reads per R from {start}, {late} ms late");
                assert!(lag <= R / 15, "{lag:?} behind, from {start}, {late} ms late");
            }
        }
    }

    #[test]
    fn a_holder_that_is_irregular_costs_no_more() {
        let irregular = |round: u64| Duration::from_millis((round * 7_919) % 60);
        let (cost, lag) = watch(300, irregular, 1_000);
        assert!(cost <= 1.1, "{cost} reads per R");
        assert!(lag <= R / 5, "{lag:?}");
    }

    #[test]
    fn a_holder_with_another_interval_costs_no_more() {
        for late in [500, 1_000, 5_000] {
            let (cost, _) = watch(0, |_| Duration::from_millis(late), 500);
            assert!(cost <= 1.1, "{cost} reads per R at {late} ms late");
        }
    }
}
