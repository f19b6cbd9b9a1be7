//! What was done, how it came out, and the lines at the end.

use crate::args::Kind;
use std::time::Duration;

/// A takeover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) fault: &'static str,
    pub(crate) measured: Duration,
    /// What the protocol promises.
    pub(crate) bound: Duration,
    /// What the operations of the store may take on top, as they took meanwhile.
    pub(crate) slack: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) kills: u64,
    pub(crate) freezes: u64,
    pub(crate) stops: u64,
    pub(crate) cuts: u64,
    pub(crate) jumps: u64,
    /// Freezes that hit a process within a lock, and were undone at once.
    pub(crate) undone: u64,
    /// Takeovers beyond the bound while operations of the store took longer than R/2: they say
    /// something about the machine.
    pub(crate) disturbed: u64,
    pub(crate) faults: Vec<String>,
    takeovers: Vec<Took>,
}

impl Tally {
    pub(crate) fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Kill => &mut self.kills,
            Kind::Freeze => &mut self.freezes,
            Kind::Stop => &mut self.stops,
            Kind::Jump => &mut self.jumps,
            Kind::Cut => &mut self.cuts,
        } += 1;
    }

    /// Takes in a takeover. True: it was too late, and nothing but the protocol is to blame.
    pub(crate) fn took(&mut self, took: Took, renew: Duration) -> bool {
        let is_beyond = took.measured > took.bound + took.slack;
        let is_disturbed = is_beyond && took.slack > renew;
        self.disturbed += u64::from(is_disturbed);
        self.takeovers.push(took);
        is_beyond && !is_disturbed
    }

    /// How long takeovers took, by what they followed on, beside the bound.
    pub(crate) fn takeovers(&self, bound: Duration) -> String {
        let mut text = String::new();
        for fault in ["kill", "freeze", "cut"] {
            let own = || self.takeovers.iter().filter(|took| took.fault == fault);
            let mut times: Vec<_> = own().map(|took| took.measured).collect();
            times.sort_unstable();
            let Some(max) = times.last() else { continue };
            let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
            let slack = own().map(|took| took.slack).max().unwrap_or_default();
            let within = times.iter().filter(|time| **time <= bound).count();
            text += &format!(
                "takeovers after a {fault:<6} {:>5}: p50 {:.3?}  p99 {:.3?}  max {max:.3?}; bound \
                 {bound:.3?} ({within} within), and {slack:.3?} at most for the store\n",
                times.len(),
                at(50),
                at(99),
            );
        }
        if self.disturbed > 0 {
            text += &format!(
                "{} of them were later than that while operations of the store took more than R/2\n",
                self.disturbed
            );
        }
        text
    }

    /// What was done beside kills, freezes, cuts and jumps.
    pub(crate) fn others(&self) -> String {
        format!(
            "{} graceful stops; {} freezes hit a process within a lock and were undone at once",
            self.stops, self.undone
        )
    }

    pub(crate) fn closing(&self, overlaps: usize) -> String {
        let Self { kills, freezes, cuts, jumps, .. } = self;
        format!("kills={kills} freezes={freezes} cuts={cuts} jumps={jumps} overlaps={overlaps}")
    }
}
