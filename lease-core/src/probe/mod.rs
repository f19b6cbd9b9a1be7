//! Refuses stores whose conditions do not hold.
//!
//! Many stores that speak S3 ignore `If-None-Match` or `If-Match`, honour them one request after the
//! other but not side by side, or stand behind a proxy that rewrites ETags. On such a store two
//! instances hold the lease at once, and nothing else would show it. So a store is tried before the
//! first operation on the lease, on objects of the probe's own.
//!
//! # What it leaves behind
//!
//! A probe writes at most two objects of a few dozen bytes (three on a store that it refuses),
//! `probe-<32 random digits>` and `…-race`, beside the lease. A [`LeaseStore`] cannot delete, by
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

pub use error::{ProbeError, ProbeStep, Refusal};
pub use keys::{ProbeCleaner, ProbeKey};

use crate::{
    key::ObjectKey,
    race::{RACERS, Race, race_creates, race_replaces},
    store::{Cause, LeaseStore, Read, StoreError, StoreErrorKind, Version},
};
use bytes::Bytes;
use keys::ProbeKeys;

/// Fewer racers than this with a certain answer are no race: most of them may never have arrived.
/// Not more, since there are servers that answer 500 to losers.
const FEWEST_CERTAIN: usize = RACERS / 4;

/// What a store showed of itself while it was probed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Losers of a race that were told [`StoreError::Contended`].
    pub contended: usize,
    /// Losers of a race that were told [`StoreError::InDoubt`], as by servers that answer 500 there.
    pub in_doubt: usize,
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
    Probe::new(store, &ProbeKeys::beside(lease)?).run().await
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
    let keys = ProbeKeys::beside(lease)?;
    let verdict = Probe::new(store, &keys).run().await;
    for key in keys.iter() {
        if let Err(error) = store.remove_probe_object(key).await {
            tracing::warn!(%key, %error, "a probe object was not removed; delete it by hand");
        }
    }
    verdict
}

struct Probe<'a> {
    store: &'a dyn LeaseStore,
    keys: &'a ProbeKeys,
    report: ProbeReport,
}

impl<'a> Probe<'a> {
    fn new(store: &'a dyn LeaseStore, keys: &'a ProbeKeys) -> Self {
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
        self.race_replaces(&self.keys.object, &replaced).await?;
        let raced = self.race_creates().await?;
        self.race_replaces(&self.keys.race, &raced).await?;
        Ok(self.report)
    }

    async fn create_missing(&mut self) -> Result<Version, ProbeError> {
        let (step, key) = (ProbeStep::CreateMissing, self.keys.object.as_object_key());
        let content = self.content("created");
        self.report.requests += 1;
        let version = self.store.create_if_absent(key, content.clone()).await;
        let version = version.map_err(|error| failed(step, error))?;
        self.shows(step, key, &content, &version).await?;
        Ok(version)
    }

    async fn create_existing(&mut self, current: &Version) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::CreateExisting, self.keys.object.as_object_key());
        self.report.requests += 1;
        let write = self.store.create_if_absent(key, self.content("created again")).await;
        expect_precondition(step, write)?;
        self.shows(step, key, &self.content("created"), current).await
    }

    async fn replace_current(&mut self, current: &Version) -> Result<Version, ProbeError> {
        let (step, key) = (ProbeStep::ReplaceCurrent, self.keys.object.as_object_key());
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
        let (step, key) = (ProbeStep::ReplaceStale, self.keys.object.as_object_key());
        self.report.requests += 1;
        let write = self.store.replace_if_match(key, self.content("stale"), stale).await;
        expect_precondition(step, write)?;
        self.shows(step, key, &self.content("replaced"), current).await
    }

    async fn read_unless(&mut self, stale: &Version, current: &Version) -> Result<(), ProbeError> {
        let (step, key) = (ProbeStep::ReadUnlessStale, self.keys.object.as_object_key());
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
        let (step, key) = (ProbeStep::ReplaceMissing, self.keys.missing.as_object_key());
        self.report.requests += 2;
        let write = self.store.replace_if_match(key, self.content("missing"), version).await;
        expect_precondition(step, write)?;
        match self.store.read_versioned(key, None).await {
            Ok(Read::Missing) => Ok(()),
            Ok(_) => Err(refused(step, "it was refused, but the object is there now")),
            Err(error) => Err(failed(step, error)),
        }
    }

    async fn race_replaces(
        &mut self,
        key: &ProbeKey,
        version: &Version,
    ) -> Result<Version, ProbeError> {
        let (entries, key) = (self.entries("replacing"), key.as_object_key());
        let race = race_replaces(self.store, key, version, &entries).await;
        self.one_won(ProbeStep::RaceReplaces, key, &entries, race).await
    }

    async fn race_creates(&mut self) -> Result<Version, ProbeError> {
        let (entries, key) = (self.entries("creating"), self.keys.race.as_object_key());
        let race = race_creates(self.store, key, &entries).await;
        self.one_won(ProbeStep::RaceCreates, key, &entries, race).await
    }

    /// Exactly one of the racers won, and its content is there.
    async fn one_won(
        &mut self,
        step: ProbeStep,
        key: &ObjectKey,
        entries: &[Bytes],
        race: Race,
    ) -> Result<Version, ProbeError> {
        self.report.requests += entries.len();
        self.report.contended += race.contended;
        self.report.in_doubt += race.in_doubt.len();
        let won = race.won.len();
        if won > 1 {
            return Err(refused(
                step,
                format!("{won} of {RACERS} writers won, expected exactly one"),
            ));
        }
        let certain = race.certain();
        if let Some(stray) = race.stray {
            return Err(failed(step, stray));
        }
        match (race.won.into_iter().next(), race.in_doubt.into_iter().next()) {
            (None, Some((_, doubt))) => Err(inconclusive(step, doubt)),
            (None, None) if race.contended > 0 => {
                let found = format!("creating or replacing {key}: nobody won, each met another");
                Err(inconclusive(step, StoreError::Contended(Cause::new(found))))
            }
            (None, None) => {
                Err(refused(step, format!("none of {RACERS} writers won, but all lost")))
            }
            (Some(_), Some((_, doubt))) if certain < FEWEST_CERTAIN => {
                Err(inconclusive(step, doubt))
            }
            (Some((winner, version)), _) => {
                self.shows(step, key, &entries[winner], &version).await?;
                Ok(version)
            }
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

    fn entries(&self, what: &str) -> Vec<Bytes> {
        (0..RACERS).map(|racer| self.content(&format!("{what} {racer}"))).collect()
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
