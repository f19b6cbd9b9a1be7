//! What the cases share: operations that must succeed, and operations that must be refused.

use super::Target;
use crate::{
    key::ObjectKey,
    store::{Read, StoreError, StoreErrorKind, Version},
};
use bytes::Bytes;
use std::{future::poll_fn, task::Poll};

/// A case failed: what the store did, and what it should have done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CaseFailed(String);

impl CaseFailed {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Fails the case with a sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($sentence:tt)+) => {
        if !$condition {
            return Err(CaseFailed::new(format!($($sentence)+)));
        }
    };
}

impl Target {
    /// A key of this case. `name` is a valid key.
    pub(super) fn key(&self, name: &str) -> Result<ObjectKey, CaseFailed> {
        ObjectKey::new(&format!("{}/{name}", self.prefix)).map_err(|error| {
            CaseFailed::new(format!("the prefix of the target leaves no room for a key: {error}"))
        })
    }

    /// Reads; any error fails the case.
    pub(super) async fn read(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, CaseFailed> {
        self.store.read_versioned(key, unless).await.map_err(|error| {
            CaseFailed::new(format!("reading {key} failed ({:?}): {error}", error.kind()))
        })
    }

    /// Reads an object that must be there.
    pub(super) async fn found(&self, key: &ObjectKey) -> Result<(Bytes, Version), CaseFailed> {
        match self.read(key, None).await? {
            Read::Found { content, version, .. } => Ok((content, version)),
            other => Err(CaseFailed::new(format!("reading {key} told {other:?}, but it is there"))),
        }
    }

    /// Creates; any error fails the case.
    pub(super) async fn create(
        &self,
        key: &ObjectKey,
        content: impl Into<Bytes>,
    ) -> Result<Version, CaseFailed> {
        self.store.create_if_absent(key, content.into()).await.map_err(|error| {
            CaseFailed::new(format!("creating {key} failed ({:?}): {error}", error.kind()))
        })
    }

    /// Replaces; any error fails the case.
    pub(super) async fn replace(
        &self,
        key: &ObjectKey,
        content: impl Into<Bytes>,
        version: &Version,
    ) -> Result<Version, CaseFailed> {
        self.store.replace_if_match(key, content.into(), version).await.map_err(|error| {
            let kind = error.kind();
            CaseFailed::new(format!(
                "replacing version {version} of {key} failed ({kind:?}): {error}"
            ))
        })
    }

    /// The read shows exactly this content and this version.
    pub(super) async fn shows(
        &self,
        key: &ObjectKey,
        content: impl Into<Bytes>,
        version: &Version,
    ) -> Result<(), CaseFailed> {
        let (expected, (content, told)) = (content.into(), self.found(key).await?);
        ensure!(
            content == expected,
            "reading {key} told {}, expected {}",
            brief(&content),
            brief(&expected)
        );
        ensure!(
            told == *version,
            "reading {key} told version {told:?}, but the write that made it returned {version:?}"
        );
        Ok(())
    }

    /// The read says that there is no such object.
    pub(super) async fn shows_nothing(&self, key: &ObjectKey) -> Result<(), CaseFailed> {
        let read = self.read(key, None).await?;
        ensure!(read == Read::Missing, "reading {key} told {read:?}, but nobody wrote it");
        Ok(())
    }
}

/// The write was refused because its condition does not hold.
pub(super) fn refused(what: &str, result: Result<Version, StoreError>) -> Result<(), CaseFailed> {
    match result {
        Ok(version) => {
            Err(CaseFailed::new(format!("{what} was not refused: it wrote version {version}")))
        }
        Err(error) => {
            let kind = error.kind();
            ensure!(
                kind == StoreErrorKind::Precondition,
                "{what} was refused as {kind:?}, expected Precondition: {error}"
            );
            Ok(())
        }
    }
}

/// A content, short enough for a sentence.
pub(super) fn brief(content: &Bytes) -> String {
    let start = content.get(..40).unwrap_or(content);
    format!("{} bytes \"{}\"", content.len(), start.escape_ascii())
}

/// Lets the other futures of the task run.
pub(super) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
