//! How a simulation ended.

use super::{
    hazards::Setting,
    trace::{Record, time_line},
    world::Counts,
};
use std::{fmt, time::Duration};

/// A world in which everything held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What happened how often.
    pub counts: Counts,
    /// A number that stands for every single step: two runs with the same did the same.
    pub digest: u64,
}

/// Something that must hold did not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which invariant says so.
    pub invariant: &'static str,
    /// When, in true time since the world began.
    pub at: Duration,
    /// What is wrong.
    pub what: String,
}

impl Violation {
    pub(super) fn new(invariant: &'static str, at: Duration, what: String) -> Self {
        Self { invariant, at, what }
    }
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
    pub records: Vec<Record>,
}

/// How much of a time line is shown with a failure.
const LAST_STEPS: usize = 400;

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
