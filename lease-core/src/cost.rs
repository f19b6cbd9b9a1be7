//! What leases cost in requests, and in money where requests are paid for.
//!
//! An independent lease is renewed every R by its holder and read every R by each standby. Under
//! *sessions* (protocol, section 9) a process renews one object for all that it holds, and a standby
//! watches one object for each holder: the number of leases does not matter, except for what an audit
//! reads. Acquisitions, releases and retries come on top; they are few.
//!
//! ```
//! use lease_core::{Timing, cost::{Fleet, Prices}};
//!
//! let fleet = Fleet { leases: 1_000, holders: 1, standbys: 1, timing: Timing::default(), audit: None };
//! assert_eq!(fleet.independent().writes_per_hour, 360_000.0);
//! assert_eq!(fleet.under_sessions().writes_per_hour, 360.0);
//!
//! let prices = Prices { per_million_writes: 5.0, per_million_reads: 0.4 };    // what your provider charges
//! assert!(fleet.independent().per_month(prices) > 1_000.0);
//! assert!(fleet.under_sessions().per_month(prices) < 2.0);
//! ```

use crate::timing::Timing;
use std::time::Duration;

/// Hours in a month, as providers count.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// How much more often a standby reads at most, since it reads right behind the holder's renewals
/// (protocol, section 8). Without phase lock: 1.
pub const PHASE_LOCK_READS_MAX: f64 = 1.1;

/// Leases, and who holds and watches them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fleet {
    /// How many leases there are.
    pub leases: u64,
    /// How many processes hold them. Those that hold none count as standbys.
    pub holders: u64,
    /// How many processes stand by, each for all of the leases.
    pub standbys: u64,
    /// T and R, the same for all.
    pub timing: Timing,
    /// How often a holder under a session reads each of its leases, if at all.
    pub audit: Option<Duration>,
}

/// Requests per hour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Requests {
    /// Conditional writes.
    pub writes_per_hour: f64,
    /// Reads; nearly all are conditional and find nothing new.
    pub reads_per_hour: f64,
}

/// What a provider charges, in whatever currency.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices {
    /// For a million writes (`PUT`).
    pub per_million_writes: f64,
    /// For a million reads (`GET`).
    pub per_million_reads: f64,
}

impl Fleet {
    /// Every lease for itself.
    #[must_use]
    pub fn independent(&self) -> Requests {
        let renewals = count(self.leases) * per_hour(self.timing.renew());
        Requests { writes_per_hour: renewals, reads_per_hour: renewals * count(self.standbys) }
    }

    /// One session for each process that holds any.
    #[must_use]
    pub fn under_sessions(&self) -> Requests {
        let renewals = count(self.holders) * per_hour(self.timing.renew());
        let audits = self.audit.map_or(0.0, |every| count(self.leases) * per_hour(every));
        Requests {
            writes_per_hour: renewals,
            reads_per_hour: renewals * count(self.standbys) + audits,
        }
    }
}

impl Requests {
    /// All of them.
    #[must_use]
    pub fn per_hour(&self) -> f64 {
        self.writes_per_hour + self.reads_per_hour
    }

    /// What they cost in a month of [`HOURS_PER_MONTH`].
    #[must_use]
    pub fn per_month(&self, prices: Prices) -> f64 {
        let per_hour = self.writes_per_hour * prices.per_million_writes
            + self.reads_per_hour * prices.per_million_reads;
        per_hour * HOURS_PER_MONTH / 1e6
    }
}

/// How often something that comes every so long comes in an hour.
fn per_hour(every: Duration) -> f64 {
    3600.0 / every.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 leases")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(leases: u64) -> Fleet {
        Fleet { leases, holders: 1, standbys: 2, timing: Timing::default(), audit: None }
    }

    #[test]
    fn independent_leases_cost_what_one_does_each() {
        let one = fleet(1).independent();
        assert_eq!((one.writes_per_hour, one.reads_per_hour), (360.0, 720.0));
        assert_eq!(fleet(1_000).independent().per_hour(), 1_000.0 * one.per_hour());
    }

    #[test]
    fn leases_under_a_session_cost_what_one_lease_does() {
        let one = fleet(1).independent();
        assert_eq!(fleet(1).under_sessions(), one);
        assert_eq!(fleet(1_000).under_sessions(), one);
        let two = Fleet { holders: 2, ..fleet(1_000) }.under_sessions();
        assert_eq!(two.per_hour(), 2.0 * one.per_hour());
    }

    #[test]
    fn an_audit_reads_each_lease() {
        let audited = Fleet { audit: Some(Duration::from_secs(60)), ..fleet(1_000) };
        let reads = audited.under_sessions().reads_per_hour;
        assert_eq!(reads, 720.0 + 60.0 * 1_000.0);
    }

    #[test]
    fn writes_and_reads_have_prices_of_their_own() {
        let requests = Requests { writes_per_hour: 2e6, reads_per_hour: 1e6 };
        let prices = Prices { per_million_writes: 5.0, per_million_reads: 0.5 };
        assert_eq!(requests.per_month(prices), 10.5 * HOURS_PER_MONTH);
    }
}
