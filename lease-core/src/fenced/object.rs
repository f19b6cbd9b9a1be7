use super::{
    Change, Current, Doubt, FencedError, Stamp,
    envelope::{Envelope, NoEnvelope, OVERHEAD_BYTES_MAX},
};
use crate::{
    key::ObjectKey,
    record::Nonce,
    store::{LeaseStore, Read, StoreError, Version},
};
use bytes::Bytes;
use fencing::{Epoch, Stale};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// An object that refuses writers whose token is smaller than the highest it has seen.
///
/// The [module](super) says how, and what it cannot do. Clones share what they know of the object.
///
/// ```
/// use lease_core::{ObjectKey, fenced::FencedObject, fencing::Epoch, testing::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();                  // a service has an `S3Store`, or a `LocalStore`
/// let key = ObjectKey::new("orders/balance")?;
/// let (a, b) = (FencedObject::new(store.clone(), key.clone()), FencedObject::new(store, key));
/// let (old, new) = (Epoch::new(7).unwrap(), Epoch::new(8).unwrap());      // fence.epoch()
///
/// a.put(old, "100").await?;
/// let sealed = b.seal(new).await?;                 // at the takeover, before anything else
/// assert_eq!(sealed.content.unwrap(), "100");      // the last word of the old holder
/// b.put(new, "70").await?;
///
/// let refused = a.put(old, "90").await.unwrap_err();      // it wakes up
/// assert_eq!(refused.stale().unwrap().highest, new);
/// assert_eq!(b.read().await?.unwrap().content.unwrap(), "70");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The store
///
/// Any [`LeaseStore`]. One that [needs a probe](LeaseStore::needs_probe) must have passed it, by being
/// opened (`S3Store`), by carrying a lease, or by [`probe`](crate::probe::probe). An object is at most
/// as large as the store [reads](LeaseStore::max_object_bytes), 64 KiB unless it was opened with
/// another limit, less [`OVERHEAD_BYTES_MAX`](super::OVERHEAD_BYTES_MAX).
///
/// A write is one request where this handle made the last one, two otherwise.
#[derive(Clone)]
pub struct FencedObject {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn LeaseStore>,
    key: ObjectKey,
    known: Mutex<Known>,
}

/// What the clones of a handle know.
#[derive(Default)]
struct Known {
    /// The highest token that was seen in the object. It never goes back, whatever happens to that.
    highest: Option<Epoch>,
    /// What a write may be made on without reading first; the store's condition says whether it is
    /// still so.
    base: Option<Base>,
}

/// What a write is made on.
#[derive(Clone)]
pub(super) struct Base {
    /// `None`: there is no object.
    version: Option<Version>,
    epoch: Option<Epoch>,
    counter: u64,
}

/// What a read found: nothing, or an envelope and its version.
pub(super) struct Found(pub(super) Option<(Envelope, Version)>);

impl Found {
    pub(super) fn base(&self) -> Base {
        match &self.0 {
            None => Base::NOTHING,
            Some((envelope, version)) => Base {
                version: Some(version.clone()),
                epoch: Some(envelope.stamp.epoch),
                counter: envelope.stamp.counter,
            },
        }
    }

    pub(super) fn content(&self) -> Option<Bytes> {
        self.0.as_ref().and_then(|(envelope, _)| envelope.content.clone())
    }

    pub(super) fn current(&self) -> Option<Current> {
        let (envelope, _) = self.0.as_ref()?;
        Some(Current { content: envelope.content.clone(), stamp: envelope.stamp })
    }
}

impl Base {
    const NOTHING: Self = Self { version: None, epoch: None, counter: 0 };

    /// What a foreign object is replaced on.
    pub(super) fn foreign(version: Version) -> Self {
        Self { version: Some(version), ..Self::NOTHING }
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }
}

/// What became of a write of which something is certain.
pub(super) enum Written {
    Yes(Stamp),
    /// Another write came first. Not written, and never will be.
    Lost,
}

impl FencedObject {
    /// How often a write is made anew that others were quicker than.
    pub(super) const ATTEMPTS: u32 = 32;

    /// The object at `key`. Nothing is sent.
    #[must_use]
    pub fn new(store: impl LeaseStore, key: ObjectKey) -> Self {
        let known = Mutex::default();
        Self { inner: Arc::new(Inner { store: Arc::new(store), key, known }) }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.inner.key
    }

    /// What is there. `None`: nothing, not even a tombstone.
    ///
    /// Anybody may read. Whoever goes on from what it reads in order to write uses
    /// [`update`](Self::update), or has [sealed](Self::seal) the object first.
    ///
    /// # Errors
    ///
    /// [`FencedError`] if it cannot be read, or was not written by a fenced object.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn read(&self) -> Result<Option<Current>, FencedError> {
        Ok(self.look().await?.current())
    }

    /// Puts `content` there, whatever there was, under `token`.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] if the object has seen a larger token: nothing has changed, stop.
    /// [`FencedError::InDoubt`] if it may have been written, now or later. Putting again settles that
    /// too: once a later put has succeeded, this one can land no more. The others say why nothing was
    /// written.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the write in doubt.
    pub async fn put(&self, token: Epoch, content: impl Into<Bytes>) -> Result<Stamp, FencedError> {
        self.overwrite(token, Some(content.into())).await
    }

    /// Deletes the content, under `token`. A tombstone stays, which remembers the token.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the write in doubt.
    pub async fn delete(&self, token: Epoch) -> Result<Stamp, FencedError> {
        self.overwrite(token, None).await
    }

    /// Makes of what is there something else, under `token`. `None`: [`Change::Keep`], nothing was
    /// written.
    ///
    /// `change` is called again with what is there then if somebody else wrote in between. It gets
    /// `None` where nothing is, or a tombstone.
    ///
    /// ```
    /// # use lease_core::{ObjectKey, fenced::FencedObject, testing::MemoryStore};
    /// use lease_core::{fenced::Change, fencing::Epoch};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let object = FencedObject::new(MemoryStore::new(), ObjectKey::new("orders/visits")?);
    /// let count = |bytes: Option<bytes::Bytes>| -> u64 {
    ///     bytes.map_or(0, |bytes| String::from_utf8_lossy(&bytes).parse().unwrap_or(0))
    /// };
    /// for _ in 0..3 {
    ///     object.update(Epoch::MIN, |now| Change::Put((count(now) + 1).to_string().into())).await?;
    /// }
    /// assert_eq!(object.read().await?.unwrap().content.unwrap(), "3");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put). An update in doubt must be [settled](Self::settle) before it is repeated,
    /// or it is made twice.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the write in doubt.
    pub async fn update(
        &self,
        token: Epoch,
        mut change: impl FnMut(Option<Bytes>) -> Change,
    ) -> Result<Option<Stamp>, FencedError> {
        self.admit(token, None)?;
        for _ in 0..Self::ATTEMPTS {
            let found = self.look().await?;
            let base = found.base();
            self.admit(token, base.epoch)?;
            let content = match change(found.content()) {
                Change::Keep => return Ok(None),
                Change::Delete => None,
                Change::Put(content) => Some(content),
            };
            if let Written::Yes(stamp) = self.write_on(&base, token, content).await? {
                return Ok(Some(stamp));
            }
        }
        Err(self.contended())
    }

    async fn overwrite(&self, token: Epoch, content: Option<Bytes>) -> Result<Stamp, FencedError> {
        self.admit(token, None)?;
        let mut base = self.known().base.take();
        for _ in 0..Self::ATTEMPTS {
            let on = match base.take() {
                Some(known) => known,
                None => self.look().await?.base(),
            };
            self.admit(token, on.epoch)?;
            if let Written::Yes(stamp) = self.write_on(&on, token, content.clone()).await? {
                return Ok(stamp);
            }
        }
        Err(self.contended())
    }

    /// The one comparison: with what the object shows, and with all that it ever showed here.
    pub(super) fn admit(&self, token: Epoch, shown: Option<Epoch>) -> Result<(), FencedError> {
        let highest = self.known().highest.max(shown);
        Stale::check(token, highest).map_err(|stale| {
            tracing::warn!(key = %self.key(), presented = %token, highest = %stale.highest, "a stale writer was refused");
            FencedError::Stale(stale)
        })
    }

    /// Reads the object.
    pub(super) async fn look(&self) -> Result<Found, FencedError> {
        let Some((bytes, version)) = self.look_raw().await? else { return Ok(Found(None)) };
        match Envelope::decode(&bytes) {
            Ok(envelope) => Ok(self.seen(envelope, version)),
            Err(NoEnvelope::Foreign) => Err(FencedError::NotFenced { key: self.key().clone() }),
            Err(NoEnvelope::Damaged(flaw)) => {
                Err(FencedError::Damaged { key: self.key().clone(), flaw })
            }
        }
    }

    pub(super) fn seen(&self, envelope: Envelope, version: Version) -> Found {
        let mut known = self.known();
        known.highest = known.highest.max(Some(envelope.stamp.epoch));
        drop(known);
        Found(Some((envelope, version)))
    }

    pub(super) async fn look_raw(&self) -> Result<Option<(Bytes, Version)>, FencedError> {
        let key = || self.key().clone();
        match self.inner.store.read_versioned(self.key(), None).await {
            Ok(Read::Found { content, version, .. }) => Ok(Some((content, version))),
            Ok(Read::Missing) => Ok(None),
            // It was not asked for.
            Ok(Read::NotModified) => Err(FencedError::Unavailable {
                key: key(),
                source: StoreError::Unavailable(crate::store::Cause::new(
                    "the store told \"not modified\" to an unconditional read; is there a cache before it?",
                )),
            }),
            Err(StoreError::Corrupt { .. }) => Err(self.too_large()),
            Err(source @ StoreError::Unsupported(_)) => {
                Err(FencedError::Unsupported { key: key(), source })
            }
            // A read changes nothing, whatever became of it.
            Err(source) => Err(FencedError::Unavailable { key: key(), source }),
        }
    }

    /// Sends one write on the version that was read, and tells what is known of it.
    pub(super) async fn write_on(
        &self,
        base: &Base,
        token: Epoch,
        content: Option<Bytes>,
    ) -> Result<Written, FencedError> {
        self.admit(token, base.epoch)?;
        self.check_size(content.as_ref())?;
        let key = || self.key().clone();
        let counter = base.counter.checked_add(1);
        let counter = counter.ok_or_else(|| FencedError::Exhausted { key: key() })?;
        let nonce =
            Nonce::random().map_err(|source| FencedError::NoRandom { key: key(), source })?;
        let stamp = Stamp { epoch: token, counter };
        let bytes = Envelope { stamp, nonce, content }.encode();
        let store = &self.inner.store;
        let written = match &base.version {
            None => store.create_if_absent(self.key(), bytes).await,
            Some(version) => store.replace_if_match(self.key(), bytes, version).await,
        };
        match written {
            Ok(version) => {
                self.wrote(stamp, version);
                Ok(Written::Yes(stamp))
            }
            Err(StoreError::Precondition(_) | StoreError::Contended(_)) => Ok(Written::Lost),
            Err(source @ StoreError::Unavailable(_)) => {
                Err(FencedError::Unavailable { key: key(), source })
            }
            Err(source @ StoreError::Unsupported(_)) => {
                Err(FencedError::Unsupported { key: key(), source })
            }
            Err(source @ (StoreError::InDoubt(_) | StoreError::Corrupt { .. })) => {
                let replaces = base.version.clone();
                let doubt = Box::new(Doubt { key: key(), stamp, nonce, replaces });
                Err(FencedError::InDoubt { doubt, source })
            }
        }
    }

    fn wrote(&self, stamp: Stamp, version: Version) {
        let mut known = self.known();
        known.highest = known.highest.max(Some(stamp.epoch));
        let (epoch, counter) = (Some(stamp.epoch), stamp.counter);
        known.base = Some(Base { version: Some(version), epoch, counter });
    }

    fn check_size(&self, content: Option<&Bytes>) -> Result<(), FencedError> {
        let bytes = content.map_or(0, Bytes::len).saturating_add(OVERHEAD_BYTES_MAX);
        if bytes > self.inner.store.max_object_bytes() { Err(self.too_large()) } else { Ok(()) }
    }

    fn too_large(&self) -> FencedError {
        let bytes_max = self.inner.store.max_object_bytes();
        FencedError::TooLarge { key: self.key().clone(), bytes_max }
    }

    pub(super) fn contended(&self) -> FencedError {
        FencedError::Contended { key: self.key().clone(), attempts: Self::ATTEMPTS }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FencedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedObject")
            .field("key", self.key())
            .field("highest_seen", &self.known().highest)
            .finish_non_exhaustive()
    }
}
