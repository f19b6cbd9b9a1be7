//! How a simulation of sessions ended.

use super::{
    super::{report::Violation, trace::Record},
    setting::Setting,
    trace::{Step, time_line},
    world::Counts,
};
use std::fmt;

/// A world in which everything held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What happened how often.
    pub counts: Counts,
    /// A number that stands for every single step: two runs with the same did the same.
    pub digest: u64,
}

/// A violation, the seed that leads to it, and all that happened on the way.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed: the same leads to the same.
    pub seed: u64,
    /// What was violated.
    pub violation: Violation,
    /// The world it happened in.
    pub setting: Setting,
    /// Every step up to there.
    pub records: Vec<Record<Step>>,
}

/// How much of a time line is shown with a failure.
const LAST_STEPS: usize = 600;

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, at, what } = &self.violation;
        writeln!(f, "seed {}: \"{invariant}\" does not hold at {at:?}: {what}", self.seed)?;
        writeln!(f, "{:#?}", self.setting)?;
        let from = self.records.len().saturating_sub(LAST_STEPS);
        f.write_str(&time_line(self.records.get(from..).unwrap_or_default()))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
