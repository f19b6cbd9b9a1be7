//! What a lease asks of a store: three operations, and errors that say what is known of a write.
//!
//! A driver is three conditional operations plus the classification of their outcomes. It never
//! retries: an HTTP client's own retry of a conditional write that did land reads as a conflict with
//! oneself. Retrying is the state machine's decision alone.

use crate::key::ObjectKey;
use async_trait::async_trait;
use bytes::Bytes;
use std::{fmt, sync::Arc, time::Duration};

/// The most that is read of an object, unless a store is opened with another limit: 64 KiB. What is
/// larger is [`StoreError::Corrupt`]. A lease never needs more.
pub const MAX_OBJECT_BYTES: usize = 64 * 1024;

/// A store with conditional writes, as a lease needs it.
///
/// Object-safe; `Arc<dyn LeaseStore>` is the usual form. Every driver passes the same conformance
/// suite (`testing::conformance`, feature `testing`).
///
/// # What an implementation owes
///
/// - A version is what the store itself compares: the write succeeds iff the object still has it.
///   Versions may come from content, so the same content may have the same version again.
/// - The comparison and the write are one atomic step, also against writers on other machines.
/// - A write that was reported as successful is durable, and every later read shows it or a newer one.
/// - No operation retries a write, and an unknown outcome of a write is [`StoreError::InDoubt`].
/// - At most [`max_object_bytes`](Self::max_object_bytes) of an object are read.
/// - No future of it blocks its thread: the runner polls them within the task that watches the deadline.
///   While one blocks, work is not told that its tenure is lost. (Its fence shuts all the same.)
///
/// # Cancel safety
///
/// Dropping the future of a write leaves the write in doubt: it may land, now or later. A driver
/// should try not to let it land.
#[async_trait]
pub trait LeaseStore: Send + Sync + fmt::Debug + 'static {
    /// Reads the object and its version.
    ///
    /// With `unless`, an object that still has that version may be answered by
    /// [`Read::NotModified`] without its content.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the object is too large to be a record; it still has a version.
    /// [`StoreError::Unavailable`] or [`StoreError::InDoubt`] if it could not be read: only an
    /// answer that says "no such object" is [`Read::Missing`].
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError>;

    /// Writes the object if there is none, and returns its version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Precondition`] if it exists; the others as [`StoreError`] says.
    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError>;

    /// Replaces the object if it still has `version`, and returns the new version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Precondition`] if it has another version or is gone; the others as
    /// [`StoreError`] says.
    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError>;

    /// Whether somebody has to try the conditions out before a lease is put on this store.
    ///
    /// The default is yes, and a `LeaseManager` then [probes](crate::probe) the store when it starts.
    /// A driver whose conditions hold by construction (a lock around compare and write, in code of
    /// its own), or that has probed the store when it was opened, says no.
    fn needs_probe(&self) -> bool {
        true
    }

    /// The most that this store reads of an object, in bytes: [`MAX_OBJECT_BYTES`], or more where it
    /// was opened so.
    ///
    /// A lease belongs on a store with the default limit: whoever can write there can make each of its
    /// polls read that much. For [fenced objects](crate::fenced) that are larger, open a second store.
    fn max_object_bytes(&self) -> usize {
        MAX_OBJECT_BYTES
    }
}

#[async_trait]
impl<S: LeaseStore + ?Sized> LeaseStore for Arc<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        (**self).read_versioned(key, unless).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        (**self).create_if_absent(key, content).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        (**self).replace_if_match(key, content, version).await
    }

    fn needs_probe(&self) -> bool {
        (**self).needs_probe()
    }

    fn max_object_bytes(&self) -> usize {
        (**self).max_object_bytes()
    }
}

/// What a read found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// The object, its version, and how old the store says that version is.
    Found {
        /// The content, at most [`LeaseStore::max_object_bytes`].
        content: Bytes,
        /// What to present to [`LeaseStore::replace_if_match`].
        version: Version,
        /// How long ago the store wrote this version, never more than it is, told *on the store's own one clock* (for S3:
        /// `Date` minus `Last-Modified` of one response, in whole seconds). `None` where there is
        /// no such clock: a local file's age is told by this machine's wall clock, which jumps.
        age: Option<Duration>,
    },
    /// There is no object under the key, and the store said so.
    Missing,
    /// The object still has the version that was passed as `unless`.
    NotModified,
}

/// A version of an object: opaque, compared as a whole, presented back as it came.
///
/// It holds what a store needs to recognise its own version: an entity tag, and where the store has
/// one, a generation beside it.
///
/// ```
/// use lease_core::Version;
///
/// let version = Version::new("\"9b2cf535\"");                  // an ETag, quotes and all
/// assert_eq!(version.tag(), "\"9b2cf535\"");
/// assert_ne!(version, version.clone().with_generation("17"));   // both count, as they came
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version {
    tag: Arc<str>,
    generation: Option<Arc<str>>,
}

impl Version {
    /// A version that the store calls `tag` (an ETag, a digest, a counter).
    #[must_use]
    pub fn new(tag: impl Into<Arc<str>>) -> Self {
        Self { tag: tag.into(), generation: None }
    }

    /// The same, with the generation that the store tells beside it.
    #[must_use]
    pub fn with_generation(self, generation: impl Into<Arc<str>>) -> Self {
        Self { generation: Some(generation.into()), ..self }
    }

    /// What the store calls it.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The generation beside it, where the store tells one.
    #[must_use]
    pub fn generation(&self) -> Option<&str> {
        self.generation.as_deref()
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.generation {
            None => write!(f, "Version({})", self.tag),
            Some(generation) => write!(f, "Version({} @ {generation})", self.tag),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tag)
    }
}

/// Why an operation on a store did not succeed, by **what is known about the write**: that decides
/// what may follow (protocol, section 3).
///
/// A driver sorts every failure into one of these, and when it cannot tell, into
/// [`InDoubt`](Self::InDoubt):
///
/// ```
/// use lease_core::{StoreError, StoreErrorKind, store::Cause};
///
/// fn of_status(status: u16) -> StoreError {
///     let cause = Cause::new(format!("the server answered {status}"));
///     match status {
///         409 => StoreError::Contended(cause),
///         404 | 412 => StoreError::Precondition(cause),       // of a write; a read's 404 is `Read::Missing`
///         501 => StoreError::Unsupported(cause),
///         408 | 429 | 500.. => StoreError::InDoubt(cause),    // it may have been written
///         _ => StoreError::Unavailable(cause),                // refused before anything was done
///     }
/// }
/// assert_eq!(of_status(503).kind(), StoreErrorKind::InDoubt);
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not written by this request now: another conditional write was in flight (S3: 409).
    #[error("not written: another conditional write to the object was in flight ({0})")]
    Contended(Cause),
    /// What was read is no record of a bounded size. It still has a version and can be replaced.
    #[error("the object is no lease record: {cause}")]
    Corrupt {
        /// The version of what was read.
        version: Version,
        /// What is wrong with it.
        cause: Cause,
    },
    /// It may or may not have been written, now or later: time-out, reset, 5xx, anything unknown.
    #[error("not known whether it was written: {0}")]
    InDoubt(Cause),
    /// Not written by this request: the object differs, exists, or is gone.
    #[error("not written: the object is not in the state that the write asked for ({0})")]
    Precondition(Cause),
    /// Certainly not written: connection refused, no permission, bucket or directory missing.
    #[error("not written, the store cannot be used now: {0}")]
    Unavailable(Cause),
    /// This store cannot do conditional writes, or was refused.
    #[error("the store is refused: {0}")]
    Unsupported(Cause),
}

impl StoreError {
    /// The kind, without the cause.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Contended(_) => StoreErrorKind::Contended,
            Self::Corrupt { .. } => StoreErrorKind::Corrupt,
            Self::InDoubt(_) => StoreErrorKind::InDoubt,
            Self::Precondition(_) => StoreErrorKind::Precondition,
            Self::Unavailable(_) => StoreErrorKind::Unavailable,
            Self::Unsupported(_) => StoreErrorKind::Unsupported,
        }
    }
}

/// [`StoreError`] without its cause: what a machine decides by and a metric is labelled with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is documented at the variant of `StoreError` of that name")]
pub enum StoreErrorKind {
    Contended,
    Corrupt,
    InDoubt,
    Precondition,
    Unavailable,
    Unsupported,
}

/// What stood behind a [`StoreError`]: a sentence for people, and the error it came from.
///
/// The sentence says what was attempted, on what, and what to do next. It holds no secret.
///
/// ```
/// use lease_core::store::Cause;
///
/// let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
/// let cause = Cause::with_source("replacing /ha/orders/lease.json; let this user write there", refused);
/// assert_eq!(cause.to_string(), "replacing /ha/orders/lease.json; let this user write there: permission denied");
/// ```
#[derive(Clone)]
pub struct Cause {
    message: Arc<str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Cause {
    /// A cause told by a sentence alone.
    #[must_use]
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// A cause with the error that it came from; the sentence does not repeat that error's text.
    #[must_use]
    pub fn with_source(
        message: impl Into<Arc<str>>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { message: message.into(), source: Some(Arc::new(source)) }
    }

    /// The error it came from, if there is one.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
