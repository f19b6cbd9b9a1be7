//! A store in memory.

use crate::{
    key::ObjectKey,
    probe::{ProbeCleaner, ProbeKey},
    store::{Cause, LeaseStore, MAX_OBJECT_BYTES, Read, StoreError, Version},
};
use async_trait::async_trait;
use bytes::Bytes;
use fencing::clock::{Clock, WallTime};
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A store in memory, atomic, for tests and for trying things out.
///
/// Clones share the same objects. It behaves like S3 and the local driver: a version is the digest
/// of the content, so content that comes back brings its version back. A test also changes objects
/// *by hand*, as an operator would: without a condition, and without being counted.
///
/// ```
/// use bytes::Bytes;
/// use lease_core::{LeaseStore, ObjectKey, Read, StoreErrorKind, testing::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let key = ObjectKey::new("orders/lease.json")?;
/// let first = store.create_if_absent(&key, Bytes::from("one")).await?;
/// let second = store.replace_if_match(&key, Bytes::from("two"), &first).await?;
///
/// let stale = store.replace_if_match(&key, Bytes::from("three"), &first).await.unwrap_err();
/// assert_eq!(stale.kind(), StoreErrorKind::Precondition);
/// assert_eq!(store.read_versioned(&key, Some(&second)).await?, Read::NotModified);
///
/// store.delete_by_hand(&key);
/// assert_eq!(store.read_versioned(&key, None).await?, Read::Missing);
/// assert_eq!(store.requests().total(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    versions: Versions,
    age: Option<(Arc<dyn Clock>, AgePrecision)>,
    max_object_bytes: usize,
}

/// Where versions come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Versions {
    Content,
    Counter,
}

/// How exactly a [`MemoryStore`] tells the age of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgePrecision {
    /// To the nanosecond.
    Exact,
    /// As S3 tells it: the difference of two times that were each cut to whole seconds, so that it
    /// is up to a second too small *or too large*.
    WholeSeconds,
}

#[derive(Default)]
struct State {
    objects: HashMap<ObjectKey, Object>,
    /// Writes so far, by hand ones too: the next version of a store that counts.
    writes: u64,
    requests: Requests,
}

#[derive(Clone)]
struct Object {
    content: Bytes,
    version: Version,
    /// On the store's own clock; `None` if it has none.
    written: Option<WallTime>,
}

/// How many operations a [`MemoryStore`] was asked for, refused ones included.
///
/// ```
/// use lease_core::testing::MemoryStore;
///
/// let store = MemoryStore::new();
/// let before = store.requests();
/// // …what is to be counted…
/// assert_eq!(store.requests().since(before).total(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Requests {
    /// Reads, those answered by "not modified" included.
    pub reads: u64,
    /// Of the reads, those answered by "not modified".
    pub not_modified: u64,
    /// Creations.
    pub creates: u64,
    /// Replacements.
    pub replaces: u64,
    /// Of the creations and replacements, those refused because their condition did not hold.
    pub refused: u64,
}

impl Requests {
    /// All operations.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.reads + self.creates + self.replaces
    }

    /// What came after `earlier` was told by the same store.
    #[must_use]
    pub fn since(&self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            not_modified: self.not_modified - earlier.not_modified,
            creates: self.creates - earlier.creates,
            replaces: self.replaces - earlier.replaces,
            refused: self.refused - earlier.refused,
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store whose versions are the SHA-256 of the content, in hexadecimal digits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_versions(Versions::Content)
    }

    /// An empty store that counts its writes: no version ever comes back.
    #[must_use]
    pub fn with_counted_versions() -> Self {
        Self::with_versions(Versions::Counter)
    }

    fn with_versions(versions: Versions) -> Self {
        Self { state: Arc::default(), versions, age: None, max_object_bytes: MAX_OBJECT_BYTES }
    }

    /// The same store, reading objects of up to `bytes`; at least 64 KiB.
    #[must_use]
    pub fn with_max_object_bytes(self, bytes: usize) -> Self {
        Self { max_object_bytes: bytes.max(MAX_OBJECT_BYTES), ..self }
    }

    /// The same store, telling ages by the wall clock of `clock`, which is then the store's own one
    /// clock. Objects that were written before have no age.
    #[must_use]
    pub fn telling_age(self, clock: impl Clock, precision: AgePrecision) -> Self {
        Self { age: Some((Arc::new(clock), precision)), ..self }
    }

    /// Puts an object there whatever was there, as somebody does by hand. Not counted.
    pub fn put_by_hand(&self, key: &ObjectKey, content: impl Into<Bytes>) -> Version {
        self.write(&mut self.lock(), key, content.into())
    }

    /// Deletes an object, as somebody does by hand, and returns what it was. Not counted.
    pub fn delete_by_hand(&self, key: &ObjectKey) -> Option<Bytes> {
        self.lock().objects.remove(key).map(|object| object.content)
    }

    /// The content of an object, whatever its size. Not counted.
    #[must_use]
    pub fn content(&self, key: &ObjectKey) -> Option<Bytes> {
        self.lock().objects.get(key).map(|object| object.content.clone())
    }

    /// The version of an object. Not counted.
    #[must_use]
    pub fn version(&self, key: &ObjectKey) -> Option<Version> {
        self.lock().objects.get(key).map(|object| object.version.clone())
    }

    /// The keys of all objects, sorted. Not counted.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.lock().objects.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// What it was asked for so far, by all its clones together.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.lock().requests
    }

    fn write(&self, state: &mut State, key: &ObjectKey, content: Bytes) -> Version {
        state.writes += 1;
        let version = match self.versions {
            Versions::Content => Version::new(hex(&Sha256::digest(&content))),
            Versions::Counter => Version::new(state.writes.to_string()),
        };
        let written = self.age.as_ref().map(|(clock, _)| clock.wall());
        let object = Object { content, version: version.clone(), written };
        state.objects.insert(key.clone(), object);
        version
    }

    fn age_of(&self, object: &Object) -> Option<Duration> {
        let ((clock, precision), written) = (self.age.as_ref()?, object.written?);
        let now = clock.wall();
        Some(match precision {
            AgePrecision::Exact => {
                Duration::from_nanos(now.unix_nanos().saturating_sub(written.unix_nanos()))
            }
            AgePrecision::WholeSeconds => {
                Duration::from_secs(now.unix_seconds().saturating_sub(written.unix_seconds()))
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let mut state = self.lock();
        state.requests.reads += 1;
        let Some(object) = state.objects.get(key).cloned() else {
            return Ok(Read::Missing);
        };
        if unless == Some(&object.version) {
            state.requests.not_modified += 1;
            return Ok(Read::NotModified);
        }
        if object.content.len() > self.max_object_bytes {
            let cause = Cause::new(format!(
                "reading {key}: it has {} bytes, which is more than the {} that are read; replace it",
                object.content.len(),
                self.max_object_bytes
            ));
            return Err(StoreError::Corrupt { version: object.version, cause });
        }
        let age = self.age_of(&object);
        Ok(Read::Found { content: object.content, version: object.version, age })
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        let mut state = self.lock();
        state.requests.creates += 1;
        if let Some(object) = state.objects.get(key) {
            let why = format!("creating {key}: it exists, version {}; read it", object.version);
            state.requests.refused += 1;
            return Err(StoreError::Precondition(Cause::new(why)));
        }
        Ok(self.write(&mut state, key, content))
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let mut state = self.lock();
        state.requests.replaces += 1;
        let why = match state.objects.get(key) {
            Some(object) if object.version == *version => {
                return Ok(self.write(&mut state, key, content));
            }
            Some(object) => format!("has version {}", object.version),
            None => "is missing".to_owned(),
        };
        state.requests.refused += 1;
        let why = format!("replacing version {version} of {key}: it {why}; read it");
        Err(StoreError::Precondition(Cause::new(why)))
    }

    /// No: compare and write are one step under one lock.
    fn needs_probe(&self) -> bool {
        false
    }

    fn max_object_bytes(&self) -> usize {
        self.max_object_bytes
    }
}

#[async_trait]
impl ProbeCleaner for MemoryStore {
    async fn remove_probe_object(&self, key: &ProbeKey) -> Result<(), StoreError> {
        self.delete_by_hand(key.as_object_key());
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.lock().objects.len();
        f.debug_struct("MemoryStore").field("objects", &objects).finish_non_exhaustive()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
