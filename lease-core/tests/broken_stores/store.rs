//! `Broken`: a store in memory with one flaw.

use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{
    LeaseStore, ObjectKey, Read, StoreError, Version,
    store::{Cause, MAX_OBJECT_BYTES},
    testing::MemoryStore,
};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Flaw {
    AlwaysNotModified,
    ConstantVersion,
    ContendedForPrecondition,
    CreateAppliesAndRefuses,
    CreateInTwoSteps,
    CutsAt32KiB,
    DeepKeysAreUnavailable,
    EmptyIsMissing,
    EverythingIs200,
    IgnoresIfMatch,
    IgnoresIfNoneMatch,
    KeysByLastSegment,
    LetsThreeWin,
    LosesEvery20thReplace,
    MissingIsInDoubt,
    MissingNotModified,
    NeverNotModified,
    NoConditionalWrites,
    None,
    NotModifiedIsMissing,
    OversizeIsFound,
    OversizeIsUnavailable,
    QuotedVersions,
    ReadsACache,
    RefusesEverything,
    ReplaceAppliesAndRefuses,
    ReplaceInTwoSteps,
    ReplacesMissing,
    RetriesWrites,
    SlowReplica,
    TellsAnAncientAge,
    TellsNoAge,
    TornWrites,
    TrimsText,
    UnquotedConditionOnly,
    VersionByLength,
    VersionCounts,
    WeakVersionsOnRead,
}

#[derive(Debug)]
pub(crate) struct Broken {
    flaw: Flaw,
    inner: MemoryStore,
    in_flight: AtomicUsize,
    replaces: AtomicUsize,
    /// What a cache or a replica still shows: the content before the last.
    before: Mutex<HashMap<ObjectKey, Option<Bytes>>>,
    /// What a cache shows: what was found first.
    cached: Mutex<HashMap<ObjectKey, Read>>,
}

impl Broken {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            inner: match flaw {
                Flaw::VersionCounts => MemoryStore::with_counted_versions(),
                _ => MemoryStore::new(),
            },
            in_flight: AtomicUsize::default(),
            replaces: AtomicUsize::default(),
            before: Mutex::default(),
            cached: Mutex::default(),
        }
    }

    fn put(&self, key: &ObjectKey, content: Bytes) -> Version {
        self.before.lock().unwrap().insert(key.clone(), self.inner.content(key));
        let version = self.inner.put_by_hand(key, content.clone());
        self.shown(&version, &content)
    }

    /// A version as this store tells it.
    fn shown(&self, version: &Version, content: &Bytes) -> Version {
        match self.flaw {
            Flaw::ConstantVersion => Version::new("1"),
            Flaw::VersionByLength => Version::new(content.len().to_string()),
            Flaw::QuotedVersions | Flaw::UnquotedConditionOnly => {
                Version::new(format!("\"{version}\""))
            }
            _ => version.clone(),
        }
    }

    fn current(&self, key: &ObjectKey) -> Option<Version> {
        let version = self.inner.version(key)?;
        Some(self.shown(&version, &self.inner.content(key)?))
    }

    /// Whether a replacement of `version` may go on, as this store sees it now.
    fn matches(&self, key: &ObjectKey, version: &Version) -> bool {
        let Some(current) = self.current(key) else {
            return matches!(self.flaw, Flaw::ReplacesMissing | Flaw::EverythingIs200);
        };
        match self.flaw {
            Flaw::IgnoresIfMatch | Flaw::EverythingIs200 => true,
            Flaw::UnquotedConditionOnly => format!("\"{version}\"") == current.tag(),
            _ => current == *version,
        }
    }

    fn key(&self, key: &ObjectKey) -> ObjectKey {
        match self.flaw {
            Flaw::KeysByLastSegment => ObjectKey::new(key.segments().last().unwrap()).unwrap(),
            _ => key.clone(),
        }
    }

    fn content(&self, content: Bytes) -> Bytes {
        match self.flaw {
            Flaw::CutsAt32KiB => content.slice(..content.len().min(32 * 1024)),
            Flaw::TrimsText => Bytes::from(String::from_utf8_lossy(&content).trim().to_owned()),
            _ => content,
        }
    }

    fn is_too_deep(&self, key: &ObjectKey) -> bool {
        self.flaw == Flaw::DeepKeysAreUnavailable && key.segments().count() > 5
    }

    /// Writes if `holds` says so, in the way of this store.
    async fn write(
        &self,
        key: &ObjectKey,
        content: Bytes,
        two_steps: bool,
        holds: impl Fn() -> bool,
    ) -> Result<Version, StoreError> {
        match self.flaw {
            Flaw::RefusesEverything => return Err(StoreError::Precondition(cause())),
            Flaw::NoConditionalWrites => return Err(StoreError::Unsupported(cause())),
            _ if self.is_too_deep(key) => return Err(StoreError::Unavailable(cause())),
            _ => {}
        }
        let slot = self.in_flight.fetch_add(1, Ordering::SeqCst);
        let mut held = holds();
        if two_steps {
            tokio::task::yield_now().await;
        }
        if self.flaw == Flaw::LetsThreeWin {
            tokio::task::yield_now().await;
            held &= slot < 3;
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        if !held {
            return Err(match self.flaw {
                Flaw::ContendedForPrecondition => StoreError::Contended(cause()),
                _ => StoreError::Precondition(cause()),
            });
        }
        if self.flaw == Flaw::TornWrites {
            self.put(key, Bytes::new());
            tokio::task::yield_now().await;
        }
        let version = self.put(key, self.content(content));
        if self.flaw == Flaw::RetriesWrites && !holds() {
            return Err(StoreError::Precondition(cause()));
        }
        Ok(version)
    }
}

fn cause() -> Cause {
    Cause::new("a broken store")
}

#[async_trait]
impl LeaseStore for Broken {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let key = &self.key(key);
        if self.flaw == Flaw::ReadsACache
            && let Some(read) = self.cached.lock().unwrap().get(key).cloned()
        {
            return Ok(read);
        }
        let Some(mut content) = self.inner.content(key) else {
            return match self.flaw {
                Flaw::MissingIsInDoubt => Err(StoreError::InDoubt(cause())),
                Flaw::MissingNotModified if unless.is_some() => Ok(Read::NotModified),
                _ => Ok(Read::Missing),
            };
        };
        let mut version = self.current(key).unwrap();
        if let (Flaw::SlowReplica, Some(Some(before))) =
            (self.flaw, self.before.lock().unwrap().remove(key))
        {
            content = before;
        }
        if content.is_empty() && self.flaw == Flaw::EmptyIsMissing {
            return Ok(Read::Missing);
        }
        let unchanged = unless == Some(&version) && self.flaw != Flaw::NeverNotModified;
        if unchanged || (unless.is_some() && self.flaw == Flaw::AlwaysNotModified) {
            return match self.flaw {
                Flaw::NotModifiedIsMissing => Ok(Read::Missing),
                _ => Ok(Read::NotModified),
            };
        }
        if content.len() > MAX_OBJECT_BYTES {
            match self.flaw {
                Flaw::OversizeIsFound => {}
                Flaw::OversizeIsUnavailable => return Err(StoreError::Unavailable(cause())),
                _ => return Err(StoreError::Corrupt { version, cause: cause() }),
            }
        }
        if self.flaw == Flaw::WeakVersionsOnRead {
            version = Version::new(format!("W/{version}"));
        }
        let age = match self.flaw {
            Flaw::TellsNoAge => None,
            Flaw::TellsAnAncientAge => Some(Duration::from_secs(1_700_000_000)),
            _ => Some(Duration::ZERO),
        };
        let read = Read::Found { content, version, age };
        self.cached.lock().unwrap().entry(key.clone()).or_insert(read.clone());
        Ok(read)
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        let key = &self.key(key);
        let absent = || match self.flaw {
            Flaw::IgnoresIfNoneMatch | Flaw::EverythingIs200 => true,
            _ => self.inner.content(key).is_none(),
        };
        if self.flaw == Flaw::CreateAppliesAndRefuses && !absent() {
            self.put(key, content);
            return Err(StoreError::Precondition(cause()));
        }
        let two_steps = matches!(self.flaw, Flaw::CreateInTwoSteps);
        self.write(key, content, two_steps, absent).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let key = &self.key(key);
        let matches = || self.matches(key, version);
        if self.flaw == Flaw::ReplaceAppliesAndRefuses && !matches() {
            self.put(key, content);
            return Err(StoreError::Precondition(cause()));
        }
        let number = self.replaces.fetch_add(1, Ordering::SeqCst);
        if self.flaw == Flaw::LosesEvery20thReplace && number % 20 == 19 && matches() {
            // What a write-back cache does that loses power.
            let (before, after) = (self.inner.content(key).unwrap(), self.put(key, content));
            self.put(key, before);
            return Ok(after);
        }
        let two_steps = matches!(self.flaw, Flaw::ReplaceInTwoSteps);
        self.write(key, content, two_steps, matches).await
    }
}
