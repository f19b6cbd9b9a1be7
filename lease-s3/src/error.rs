//! Why a store was not opened.

use lease_core::{StoreError, probe::Refusal};
use std::time::Duration;

/// What is wrong with the URL or the settings of a store. Nothing was sent.
///
/// Names the part that is wrong, and never quotes a value: people put secrets in strange places.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The bucket is missing or cannot be one.
    #[error(
        "the bucket is missing or no bucket name; write s3://bucket/prefix, with letters, digits, '.', '-' and '_'"
    )]
    Bucket,
    /// The certificates that are to be trusted cannot be.
    #[error(
        "the certificates to be trusted {found}; give the certificate of your CA in PEM form (`ca` names its file)"
    )]
    Certificates {
        /// What is wrong with them.
        found: &'static str,
    },
    /// Something is in the URL that has no place there: a user, a password, a port, a fragment.
    #[error("the URL of a store has no {what}; {instead}")]
    HasNo {
        /// What was found.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// Only one half of the credentials is set.
    #[error(
        "the access key id is set without the secret access key, or the other way round; set both"
    )]
    HalfCredentials,
    /// It is no URL at all.
    #[error("this is no URL; write s3://bucket/prefix?endpoint=https://host")]
    NoUrl,
    /// The prefix has a character or a segment that could be mistaken for another.
    #[error(
        "the prefix has an empty segment, '.' or '..', or a character other than letters, digits, '.', '_' and '-'; choose another"
    )]
    Prefix,
    /// An option was given twice.
    #[error("the option `{name}` is given twice; give it once")]
    RepeatedOption {
        /// Its name.
        name: &'static str,
    },
    /// The scheme is none that this crate knows, or its feature is off.
    #[error(
        "the scheme is not supported; use s3:// (or gs:// with the feature `gcp`, az:// with the feature `azure`)"
    )]
    Scheme,
    /// The settings cannot be made a client of.
    #[error(
        "no client can be made of these settings; check the endpoint, the region, and the environment variables of the provider"
    )]
    Settings,
    /// There is no such option.
    #[error("there is no option `{name}` for this scheme; the options are {known}")]
    UnknownOption {
        /// What was given, if it looks like a name.
        name: String,
        /// Those that there are.
        known: &'static str,
    },
    /// The value of an option cannot be used.
    #[error("the value of the option `{name}` cannot be used; it is {expected}")]
    Value {
        /// Its name.
        name: &'static str,
        /// What it can be.
        expected: &'static str,
    },
}

/// Why a store was not connected to.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server's certificate is not accepted. Nothing was sent.
    #[error("{place} has a certificate that is not accepted: {found}")]
    Certificate {
        /// The store.
        place: String,
        /// What is wrong with it, and what to do.
        found: String,
    },
    /// The bucket has S3 Object Lock: every renewal would become a version that cannot be deleted.
    #[error(
        "{place} has object lock, so that every renewal leaves a version that cannot be deleted; use \
         a bucket without it, or say `allow_object_lock=true`"
    )]
    ObjectLock {
        /// The store.
        place: String,
    },
    /// It cannot be told whether the bucket has S3 Object Lock.
    #[error(
        "it cannot be told whether {place} has object lock: the credentials may not ask; allow \
         them s3:GetBucketObjectLockConfiguration, or say `allow_object_lock=unknown`"
    )]
    ObjectLockUnknown {
        /// The store.
        place: String,
    },
    /// The conditions of the store do not hold: two instances could hold the lease at once.
    #[error("{place} is refused: {refusal}")]
    Refused {
        /// The store.
        place: String,
        /// What was tried, and what came back.
        refusal: Refusal,
    },
    /// It was not opened in time.
    #[error(
        "{place} was not opened within {limit:?}; check the endpoint and the network, and try again"
    )]
    Silent {
        /// The store.
        place: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The store could not be asked. Trying again may help.
    #[error("{place} could not be opened, {what}: {source}")]
    Unavailable {
        /// The store.
        place: String,
        /// What was being done.
        what: &'static str,
        /// How it failed.
        source: StoreError,
    },
    /// The settings are wrong.
    #[error(transparent)]
    Url(#[from] UrlError),
}

impl OpenError {
    /// The refusal by the probe, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}
