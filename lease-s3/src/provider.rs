//! What the three kinds of stores differ in, as far as a lease is concerned.

use crate::{tag::BadTag, tag::parse, wire::Reply};
use lease_core::{Timing, Version};
use std::{fmt, time::Duration};

/// Whose protocol a store speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Provider {
    /// Azure Blob Storage. Versions are ETags.
    Azure,
    /// Google Cloud Storage. Versions are generations, beside their ETags.
    Gcs,
    /// Amazon S3, and what speaks its protocol. Versions are ETags.
    S3,
}

impl Provider {
    /// The least time between two writes of one object that the provider sustains, where it states one.
    ///
    /// Google Cloud Storage: one write per second to the same object name
    /// (`cloud.google.com/storage/quotas`, "Maximum rate of writes to the same object name"); more
    /// is answered with 429, which leaves the write in doubt. Amazon S3 states 3 500 writes per
    /// second and *prefix*, Azure 500 requests per second and blob: no lease comes near them.
    #[must_use]
    pub const fn least_write_interval(self) -> Option<Duration> {
        match self {
            Self::Gcs => Some(Duration::from_secs(1)),
            Self::Azure | Self::S3 => None,
        }
    }

    /// Looks whether a lease with this timing writes more often than the provider sustains. A
    /// renewal that failed is tried again after R/10, so that the limit is met there first.
    #[must_use]
    pub fn exceeded_by(self, timing: &Timing) -> Option<LimitExceeded> {
        let least = self.least_write_interval()?;
        (timing.renew() < least).then(|| LimitExceeded {
            provider: self,
            least,
            renew: timing.renew(),
        })
    }

    pub(crate) const fn scheme(self) -> &'static str {
        match self {
            Self::Azure => "az",
            Self::Gcs => "gs",
            Self::S3 => "s3",
        }
    }

    /// The version that a reply tells.
    pub(crate) fn version(self, reply: &Reply) -> Result<Version, BadTag> {
        let version = Version::new(parse(reply.header("etag"))?);
        match self {
            Self::Azure | Self::S3 => Ok(version),
            // Here the generation is what a write is conditional on.
            Self::Gcs => match reply.header("x-goog-generation") {
                Some(digits) if is_number(digits) => Ok(version.with_generation(digits)),
                Some(_) => Err(BadTag::Malformed),
                None => Err(BadTag::Missing),
            },
        }
    }
}

fn is_number(text: &str) -> bool {
    // 0 is "there is no object" in a precondition.
    text.parse::<u64>().is_ok_and(|number| number > 0)
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Azure => "Azure Blob Storage",
            Self::Gcs => "Google Cloud Storage",
            Self::S3 => "S3",
        })
    }
}

/// A lease writes more often than its provider sustains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// Whose limit.
    pub provider: Provider,
    /// The least time between two writes of one object.
    pub least: Duration,
    /// The renew interval of the lease.
    pub renew: Duration,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sustains one write of an object per {:?}, and the lease is renewed every {:?}: \
             renewals will be refused; choose a longer renew interval",
            self.provider, self.least, self.renew
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_google_limits_the_writes_of_one_object() {
        let millis = Duration::from_millis;
        let fast = Timing::short(millis(3_000), millis(999)).unwrap();
        let slow = Timing::short(millis(3_000), millis(1_000)).unwrap();
        let exceeded = Provider::Gcs.exceeded_by(&fast).unwrap();
        assert!(exceeded.to_string().contains("999ms"), "{exceeded}");
        assert_eq!(Provider::Gcs.exceeded_by(&slow), None);
        assert_eq!(Provider::S3.exceeded_by(&fast), None);
        assert_eq!(Provider::Azure.exceeded_by(&fast), None);
    }
}
