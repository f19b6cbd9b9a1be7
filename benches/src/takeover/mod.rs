//! How soon a standby takes over when the holder is killed, many times.

pub mod simulated;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The takeovers of many kills, and how often the standbys read before them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Kills {
    /// From when the last renewal was sent until the fence of the other was open, in nanoseconds,
    /// ascending.
    pub took_nanos: Vec<u64>,
    /// Reads for each R that a standby watched.
    pub reads_per_renew: f64,
}

impl Kills {
    /// Sorts what was measured.
    #[must_use]
    pub fn new(mut took_nanos: Vec<u64>, reads_per_renew: f64) -> Self {
        took_nanos.sort_unstable();
        Self { took_nanos, reads_per_renew }
    }

    /// What so many of a thousand stayed within.
    #[must_use]
    pub fn at(&self, per_mille: usize) -> Duration {
        let last = self.took_nanos.len().saturating_sub(1);
        let at = self.took_nanos.len() * per_mille / 1_000;
        Duration::from_nanos(self.took_nanos.get(at.min(last)).copied().unwrap_or(0))
    }

    /// p50, p90, p99 and the longest.
    #[must_use]
    pub fn percentiles(&self) -> [Duration; 4] {
        [500, 900, 990, 1_000].map(|it| self.at(it))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.took_nanos.len()
    }
}
