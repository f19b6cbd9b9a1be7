//! Refuses stores whose conditions do not hold.
//!
//! Many stores that speak S3 ignore `If-None-Match` or `If-Match`, honour them one request after the
//! other but not side by side, or stand behind a proxy that rewrites ETags. On such a store two
//! instances hold the lease at once, and nothing else would show it. So a store is tried before the
//! first operation on the lease, on objects of the probe's own.
//!
//! # What it leaves behind
//!
//! A probe writes two objects of a few dozen bytes, `probe-<32 random digits>` and `…-race1`, beside
//! the lease; one more on a store that it refuses, and one more for each race of creators that it has
//! to repeat. A [`LeaseStore`] cannot delete, by
//! design. A fixed object instead of random ones would not do: "create what is missing" can be
//! tried once on it, and instances that probe at the same time would disturb each other. So:
//!
//! - a driver that can delete implements [`ProbeCleaner`], whose argument cannot name a lease, and
//!   calls [`probe_and_clean`];
//! - otherwise the objects stay, and a lifecycle rule for the prefix `probe-`, or a hand, removes
//!   them. Nothing ever reads them again.
//!
//! # When it is needed
//!
//! That is the caller's decision. A driver whose conditions hold by construction (a lock around
//! compare and write, in code of its own) needs no probe; one that speaks to a server does, once per
//! store it opens. The probe has no time limit of its own: put it under one.

mod error;
mod keys;
mod races;

pub use error::{ProbeError, ProbeStep, Refusal};
pub use keys::{ProbeCleaner, ProbeKey};

use crate::{
    key::ObjectKey,
    store::{LeaseStore, Read, StoreError, StoreErrorKind, Version},
};
use bytes::Bytes;
use keys::ProbeKeys;

/// What a store showed of itself while it was probed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Racers that were told [`StoreError::Contended`].
    pub contended: usize,
    /// Racers that were told [`StoreError::InDoubt`], as losers are by servers that answer 500 there.
    /// A read told what became of them.
    pub in_doubt: usize,
    /// How many races were run: 3, and those that were repeated because too few racers knew how they
    /// had fared.
    pub races: usize,
    /// Whether a read of an unchanged object was answered without its content.
    pub not_modified: bool,
    /// How many requests the probe took.
    pub requests: usize,
    /// Whether reads tell the age of a version.
    pub tells_age: bool,
}

/// Tries whether the conditional writes of `store` hold, one after the other and 16 at once, on
/// objects beside `lease`. The object `lease` itself is not touched.
///
/// ```
/// use lease_core::{ObjectKey, probe::probe, testing::MemoryStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let report = probe(&MemoryStore::new(), &ObjectKey::new("orders/lease.json")?).await?;
/// assert!(report.not_modified && !report.tells_age);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ProbeError::Refused`] if a condition does not hold: the store must not be used. Any other: the
/// store could not be probed; it must not be used before a probe of it has succeeded, and the caller
/// may probe it again (each probe has keys of its own).
///
/// # Cancel safety
///
/// May be dropped at any time. Its objects stay then.
pub async fn probe(store: &dyn LeaseStore, lease: &ObjectKey) -> Result<ProbeReport, ProbeError> {
    Probe::new(store, &mut ProbeKeys::beside(lease)?).run().await
}

/// The same, and removes the probe's objects, whatever the verdict.
///
/// An object that cannot be removed is logged and left.
///
/// # Errors
///
/// As [`probe`].
///
/// # Cancel safety
///
/// May be dropped at any time. Its objects stay then.
pub async fn probe_and_clean<S: LeaseStore + ProbeCleaner>(
    store: &S,
    lease: &ObjectKey,
) -> Result<ProbeReport, ProbeError> {
    let mut keys = ProbeKeys::beside(lease)?;
    let verdict = Probe::new(store, &mut keys).run().await;
    for key in keys.iter() {
        if let Err(error) = store.remove_probe_object(key).await {
            tracing::warn!(%key, %error, "a probe object was not removed; delete it by hand");
        }
    }
    verdict
}

struct Probe<'a> {
    store: &'a dyn LeaseStore,
    keys: &'a mut ProbeKeys,
    report: ProbeReport,
}

impl<'a> Probe<'a> {
    fn new(store: &'a dyn LeaseStore, keys: &'a mut ProbeKeys) -> Self {
        Self { store, keys, report: ProbeReport::default() }
    }

    async fn run(mut self) -> Result<ProbeReport, ProbeError> {
        let created = self.create_missing().await?;
        self.create_existing(&created).await?;
        let replaced = self.replace_current(&created).await?;
        self.replace_stale(&created, &replaced).await?;
        self.read_unless(&created, &replaced).await?;
        self.replace_missing(&replaced).await?;
        // The first race also opens the connections, so that the later ones start as one.
        let object = self.keys.object.clone();
        self.race_replaces(&object, replaced).await?;
        let (created, raced) = self.race_creates().await?;
        self.race_replaces(&created, raced).await?;
        Ok(self.report)
    }

    /// The object for one operation after the other.
    fn object(&self) -> ObjectKey {
        self.keys.object.as_object_key().clone()
    }

    async fn create_missing(&mut self) -> Result<Version, ProbeError> {
        let (step, key) = (ProbeStep::CreateMissing, &self.object());
        let content = self.content("created");
        self.report.requests += 1;
        let version = self.store.create_if_absent(key, content.clone()).await;
        let version = version.map_err(|error| failed(step, error))?;
        self.shows(step, key, &content, &version).await?;
        Ok(version)
    }

    async fn create_existing(&mut self, current: &Version) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::CreateExisting, &self.object());
        self.report.requests += 1;
        let write = self.store.create_if_absent(key, self.content("created again")).await;
        expect_precondition(step, write)?;
        self.shows(step, key, &self.content("created"), current).await
    }

    async fn replace_current(&mut self, current: &Version) -> Result<Version, ProbeError> {
        let (step, key) = (ProbeStep::ReplaceCurrent, &self.object());
        let content = self.content("replaced");
        self.report.requests += 1;
        let version = self.store.replace_if_match(key, content.clone(), current).await;
        let version = version.map_err(|error| failed(step, error))?;
        if version == *current {
            let found = format!("another content has the same version {version}");
            return Err(refused(step, found));
        }
        self.shows(step, key, &content, &version).await?;
        Ok(version)
    }

    async fn replace_stale(
        &mut self,
        stale: &Version,
        current: &Version,
    ) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::ReplaceStale, &self.object());
        self.report.requests += 1;
        let write = self.store.replace_if_match(key, self.content("stale"), stale).await;
        expect_precondition(step, write)?;
        self.shows(step, key, &self.content("replaced"), current).await
    }

    async fn read_unless(&mut self, stale: &Version, current: &Version) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::ReadUnlessStale, &self.object());
        let content = self.content("replaced");
        for known in [stale, current] {
            self.report.requests += 1;
            match self.store.read_versioned(key, Some(known)).await {
                Ok(Read::NotModified) if known == current => self.report.not_modified = true,
                Ok(read) => expect_found(step, read, &content, current)?,
                Err(error) => return Err(failed(step, error)),
            }
        }
        Ok(())
    }

    async fn replace_missing(&mut self, version: &Version) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::ReplaceMissing, &self.keys.missing.as_object_key().clone());
        self.report.requests += 2;
        let write = self.store.replace_if_match(key, self.content("missing"), version).await;
        expect_precondition(step, write)?;
        match self.store.read_versioned(key, None).await {
            Ok(Read::Missing) => Ok(()),
            Ok(_) => Err(refused(step, "it was refused, but the object is there now")),
            Err(error) => Err(failed(step, error)),
        }
    }

    /// A read shows exactly this content under exactly this version.
    async fn shows(
        &mut self,
        step: ProbeStep,
        key: &ObjectKey,
        content: &Bytes,
        version: &Version,
    ) -> Result<(), ProbeError> {
        self.report.requests += 1;
        let read = self.store.read_versioned(key, None).await;
        let read = read.map_err(|error| failed(step, error))?;
        self.report.tells_age |= matches!(read, Read::Found { age: Some(_), .. });
        expect_found(step, read, content, version)
    }

    /// A content that no other write of any probe has. All have one length, and all are written
    /// within moments, so that versions made of length and time of writing are found out.
    fn content(&self, what: &str) -> Bytes {
        Bytes::from(format!("{{\"probe\":\"{}\",\"write\":\"{what:<16}\"}}", self.keys.mark))
    }
}

fn expect_found(
    step: ProbeStep,
    read: Read,
    expected: &Bytes,
    expected_version: &Version,
) -> Result<(), ProbeError> {
    match read {
        Read::Found { content, version, .. } => {
            if content != *expected {
                let found = format!(
                    "the object then has \"{}\", expected \"{}\"",
                    content.get(..120).unwrap_or(&content).escape_ascii(),
                    expected.escape_ascii()
                );
                return Err(refused(step, found));
            }
            if version != *expected_version {
                let found =
                    format!("the write returned {expected_version:?}, a read tells {version:?}");
                return Err(refused(step, found));
            }
            Ok(())
        }
        Read::Missing => Err(refused(step, "the object is then missing")),
        Read::NotModified => Err(refused(step, "the changed object was told to be unchanged")),
    }
}

fn expect_precondition(
    step: ProbeStep,
    write: Result<Version, StoreError>,
) -> Result<(), ProbeError> {
    match write {
        Ok(version) => Err(refused(step, format!("it succeeded (version {version})"))),
        Err(StoreError::Precondition(_)) => Ok(()),
        Err(error) => Err(failed(step, error)),
    }
}

/// An operation failed in a way that the step does not expect.
fn failed(step: ProbeStep, error: StoreError) -> ProbeError {
    match error.kind() {
        StoreErrorKind::Contended | StoreErrorKind::InDoubt | StoreErrorKind::Unavailable => {
            inconclusive(step, error)
        }
        StoreErrorKind::Corrupt | StoreErrorKind::Precondition | StoreErrorKind::Unsupported => {
            refused(step, format!("it failed ({error})"))
        }
    }
}

fn inconclusive(step: ProbeStep, source: StoreError) -> ProbeError {
    ProbeError::Inconclusive { step, source }
}

fn refused(step: ProbeStep, found: impl Into<String>) -> ProbeError {
    ProbeError::Refused(Refusal { step, found: found.into() })
}
