//! How long a lease lives, how often it is renewed, and until when a renewal proves it.
//!
//! ```text
//!  S = the renewal is sent                 deadline = S + T - M          S + T
//!  |----------- the fence is open -----------------|------ margin M -----|
//!                                                  shut at this very instant
//! ```
//!
//! A standby takes over no earlier than one whole T after it first *saw* the version that this
//! renewal wrote, and it cannot have seen it before it was sent. The margin M is what clocks that
//! run at different rates, and the work that has to stop, may use up (protocol, sections 2 and 7).

use std::{fmt, time::Duration};

/// The ttl, the renew interval, and what follows from them.
///
/// | | range | default |
/// | --- | --- | --- |
/// | ttl T | 5 s to 10 min ([`Timing::short`]: from 50 ms) | 30 s |
/// | renew interval R | 1 s to T/3 ([`Timing::short`]: above 0, below T/2) | 10 s |
/// | margin M | max(R, T/5) | 10 s |
///
/// Why these defaults: 30 s rides out what ordinary networks and stores do, and with R = T/3 a
/// second try always fits before the deadline. A smaller T takes over sooner and steps down sooner.
///
/// Instances of one cluster may differ in T; then each must be told the largest with
/// [`Timing::with_max_cluster_ttl`].
///
/// ```
/// use lease_core::Timing;
/// use std::time::Duration;
///
/// let timing = Timing::new(Duration::from_secs(30), Duration::from_secs(10))?;
/// assert_eq!(timing.window(), Duration::from_secs(20));           // T - M
/// assert!(Timing::new(Duration::from_secs(30), Duration::from_secs(11)).is_err());
/// # Ok::<(), lease_core::timing::TimingError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    ttl: Duration,
    renew: Duration,
    validity: Validity,
    max_cluster_ttl: Duration,
}

impl Timing {
    /// The largest ttl that any timing allows, and so the longest that anybody waits: 10 min.
    pub const MAX_TTL: Duration = Duration::from_secs(600);
    /// The smallest ttl of [`Timing::new`]: 5 s.
    pub const MIN_TTL: Duration = Duration::from_secs(5);
    /// The smallest renew interval of [`Timing::new`]: 1 s.
    pub const MIN_RENEW: Duration = Duration::from_secs(1);
    /// The smallest ttl of [`Timing::short`]: 50 ms.
    pub const MIN_SHORT_TTL: Duration = Duration::from_millis(50);

    /// A timing for production: T from 5 s to 10 min, R from 1 s to T/3.
    ///
    /// Both are cut to whole milliseconds, which is what the record can tell.
    ///
    /// # Errors
    ///
    /// [`TimingError`] names both values and the range that is broken.
    pub fn new(ttl: Duration, renew: Duration) -> Result<Self, TimingError> {
        let timing = Self::cut(ttl, renew);
        let refuse = |rule| Err(TimingError { ttl, renew, rule });
        if timing.ttl < Self::MIN_TTL || timing.ttl > Self::MAX_TTL {
            return refuse(Rule::TtlRange);
        }
        if timing.renew < Self::MIN_RENEW || timing.renew > timing.ttl / 3 {
            return refuse(Rule::RenewRange);
        }
        Ok(timing)
    }

    /// A timing for stores on the same machine and for tests: T from 50 ms to 10 min, R below T/2.
    ///
    /// Over a network such values lose leases for no reason but latency: use [`Timing::new`].
    ///
    /// # Errors
    ///
    /// [`TimingError`] names both values and the range that is broken.
    pub fn short(ttl: Duration, renew: Duration) -> Result<Self, TimingError> {
        let timing = Self::cut(ttl, renew);
        let refuse = |rule| Err(TimingError { ttl, renew, rule });
        if timing.ttl < Self::MIN_SHORT_TTL || timing.ttl > Self::MAX_TTL {
            return refuse(Rule::ShortTtlRange);
        }
        if timing.renew.is_zero() || timing.renew >= timing.ttl / 2 {
            return refuse(Rule::ShortRenewRange);
        }
        Ok(timing)
    }

    /// The same with another rule for how long a renewal is valid.
    ///
    /// # Errors
    ///
    /// [`TimingError`] if that leaves a margin below T/5, or a window in which no second renewal
    /// fits (not above R).
    pub fn with_validity(self, validity: Validity) -> Result<Self, TimingError> {
        let timing = Self { validity, ..self };
        let refuse = |rule| Err(TimingError { ttl: self.ttl, renew: self.renew, rule });
        if timing.window() > self.ttl - self.ttl / 5 {
            return refuse(Rule::Margin);
        }
        if timing.window() <= self.renew {
            return refuse(Rule::Window);
        }
        Ok(timing)
    }

    /// The same, told the largest ttl of any instance of the cluster.
    ///
    /// Every standby waits at least this long: a lease that is missing or cannot be believed tells no
    /// ttl, and one that can be may be an older record, put back over that of a holder with a larger
    /// ttl. The default is one's own T, right only where all instances have the same.
    ///
    /// # Errors
    ///
    /// [`TimingError`] if it is below one's own ttl or above [`Timing::MAX_TTL`].
    pub fn with_max_cluster_ttl(self, max: Duration) -> Result<Self, TimingError> {
        if max < self.ttl || max > Self::MAX_TTL {
            let rule = Rule::MaxClusterTtl(max);
            return Err(TimingError { ttl: self.ttl, renew: self.renew, rule });
        }
        Ok(Self { max_cluster_ttl: max, ..self })
    }

    fn cut(ttl: Duration, renew: Duration) -> Self {
        let millis = |d: Duration| {
            // Anything above the range stays above it.
            Duration::from_millis(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
        };
        let (ttl, renew) = (millis(ttl), millis(renew));
        Self { ttl, renew, validity: Validity::Margin, max_cluster_ttl: ttl }
    }

    /// T: how long the lease lives after a renewal.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// R: how long after one renewal was sent the next one is, and how often a standby reads.
    #[must_use]
    pub const fn renew(&self) -> Duration {
        self.renew
    }

    /// The largest ttl of any instance of the cluster.
    #[must_use]
    pub const fn max_cluster_ttl(&self) -> Duration {
        self.max_cluster_ttl
    }

    /// R/10: how soon a failed request is tried again, and the most that a takeover is spread by.
    #[must_use]
    pub fn retry(&self) -> Duration {
        self.renew / 10
    }

    /// M: the safety margin.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.ttl - self.window()
    }

    /// T − M: for how long after it was sent a renewal that succeeded proves the tenure.
    #[must_use]
    pub fn window(&self) -> Duration {
        match self.validity {
            Validity::Margin => self.ttl - self.renew.max(self.ttl / 5),
            Validity::Fraction { per_mille } => self.ttl * u32::from(per_mille) / 1000,
        }
    }

    /// R/2: how long a standby waits for the answer to a read before it reads again. With R between
    /// reads and R/10 before the second try that is less than 2R, so that one read without an answer
    /// does not start the wait for the holder anew.
    #[must_use]
    pub fn read_budget(&self) -> Duration {
        self.renew / 2
    }

    /// The budget of one renewal request with `left` to go to the deadline: half of it, but at
    /// least R/2 and at most R, and never past the deadline.
    #[must_use]
    pub fn budget(&self, left: Duration) -> Duration {
        (left / 2).clamp(self.renew / 2, self.renew).min(left)
    }
}

impl Default for Timing {
    /// T = 30 s, R = 10 s.
    fn default() -> Self {
        Self::cut(Duration::from_secs(30), Duration::from_secs(10))
    }
}

/// For how long after it was sent a renewal is valid.
///
/// ```
/// use lease_core::{Timing, timing::Validity};
/// use std::time::Duration;
///
/// let timing = Timing::new(Duration::from_secs(30), Duration::from_secs(5))?;
/// assert_eq!(timing.window(), Duration::from_secs(24));                               // T - T/5
/// let sooner = timing.with_validity(Validity::Fraction { per_mille: 600 })?;
/// assert_eq!(sooner.window(), Duration::from_secs(18));
/// assert!(timing.with_validity(Validity::Fraction { per_mille: 900 }).is_err());      // no margin left
/// # Ok::<(), lease_core::timing::TimingError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Validity {
    /// T − max(R, T/5). The rule of the protocol.
    #[default]
    Margin,
    /// A fraction of T in thousandths, at most 800: a lock client that abandons its claim after 0.8
    /// of its lease in silence is `Fraction { per_mille: 800 }`.
    Fraction {
        /// Thousandths of T.
        per_mille: u16,
    },
}

/// A ttl and a renew interval that do not go together. Names both, and what to change.
///
/// ```
/// use lease_core::Timing;
/// use std::time::Duration;
///
/// let error = Timing::new(Duration::from_secs(30), Duration::from_secs(20)).unwrap_err().to_string();
/// assert!(error.starts_with("ttl 30s with renew interval 20s is refused: the renew interval is from 1 s"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("ttl {ttl:?} with renew interval {renew:?} is refused: {rule}")]
pub struct TimingError {
    ttl: Duration,
    renew: Duration,
    rule: Rule,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    Margin,
    MaxClusterTtl(Duration),
    RenewRange,
    ShortRenewRange,
    ShortTtlRange,
    TtlRange,
    Window,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Margin => f.write_str(
                "this validity leaves a margin below a fifth of the ttl, which clocks that run at \
                 different rates can use up; choose at most 800 thousandths",
            ),
            Self::MaxClusterTtl(max) => write!(
                f,
                "the largest ttl of the cluster is given as {max:?}; it is at least one's own ttl \
                 and at most 10 min"
            ),
            Self::RenewRange => f.write_str(
                "the renew interval is from 1 s to a third of the ttl, so that a second try fits \
                 before the deadline (`Timing::short` allows more, for local stores and tests)",
            ),
            Self::ShortRenewRange => {
                f.write_str("the renew interval is at least 1 ms and below half of the ttl")
            }
            Self::ShortTtlRange => f.write_str("the ttl is from 50 ms to 10 min"),
            Self::TtlRange => f.write_str(
                "the ttl is from 5 s to 10 min (`Timing::short` allows less, for local stores and \
                 tests)",
            ),
            Self::Window => f.write_str(
                "this validity ends before the next renewal is due; choose a larger one, or a \
                 shorter renew interval",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn rule_margin_is_a_fifth_of_the_ttl_even_with_a_small_renew_interval() {
        let wide = Timing::short(ms(10_000), ms(500)).unwrap();
        assert_eq!(wide.margin(), ms(2_000));
        let narrow = Timing::short(ms(10_000), ms(3_000)).unwrap();
        assert_eq!(narrow.margin(), ms(3_000));
        assert_eq!(Timing::default().window(), ms(20_000));
    }

    #[test]
    fn other_validity_rules_keep_the_margin() {
        let timing = Timing::short(ms(10_000), ms(1_000)).unwrap();
        let client = timing.with_validity(Validity::Fraction { per_mille: 800 }).unwrap();
        assert_eq!(client.window(), ms(8_000));
        for per_mille in [0, 100, 801, u16::MAX] {
            assert!(timing.with_validity(Validity::Fraction { per_mille }).is_err(), "{per_mille}");
        }
    }

    #[test]
    fn case_28_bad_timing_is_an_error_that_names_both_values() {
        let bad = [
            (0, 0),
            (5_000, 0),
            (5_000, 999),
            (4_999, 1_000),
            (600_001, 10_000),
            (30_000, 10_001),
            (u64::MAX, u64::MAX),
        ];
        for (ttl, renew) in bad {
            let text = Timing::new(ms(ttl), ms(renew)).unwrap_err().to_string();
            assert!(text.contains(&format!("{:?}", ms(ttl))), "{text}");
            assert!(text.contains(&format!("{:?}", ms(renew))), "{text}");
        }
        for (ttl, renew) in [(49, 10), (50, 0), (50, 25), (50, 30), (600_001, 1)] {
            Timing::short(ms(ttl), ms(renew)).unwrap_err();
        }
        Timing::new(Duration::MAX, Duration::MAX).unwrap_err();
        Timing::short(Duration::from_nanos(50_900_000), Duration::from_micros(900)).unwrap_err();
        Timing::short(ms(50), ms(24)).unwrap();
        Timing::default().with_max_cluster_ttl(ms(29_999)).unwrap_err();
        Timing::default().with_max_cluster_ttl(ms(600_001)).unwrap_err();
    }

    #[test]
    fn a_request_has_half_of_what_is_left_within_bounds() {
        let timing = Timing::short(ms(10_000), ms(2_000)).unwrap();
        assert_eq!(timing.budget(ms(8_000)), ms(2_000));
        assert_eq!(timing.budget(ms(3_000)), ms(1_500));
        assert_eq!(timing.budget(ms(1_200)), ms(1_000));
        assert_eq!(timing.budget(ms(600)), ms(600));
        assert_eq!(timing.budget(Duration::ZERO), Duration::ZERO);
    }
}
