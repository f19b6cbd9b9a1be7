//! What a store was asked, and what came of it.

use super::script::{Faults, Op};
use crate::{
    key::ObjectKey,
    store::{Read, StoreError, StoreErrorKind, Version},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// One operation that a [`FaultStore`](super::FaultStore) was asked for.
///
/// [`Faults::calls`] returns them in order: a test reads from them what was asked, under which
/// condition, whether it landed, and whether its caller knows.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Call {
    /// Which operation.
    pub op: Op,
    /// On which object.
    pub key: ObjectKey,
    /// What was to be written; `None` for a read.
    pub content: Option<Bytes>,
    /// The version presented: `unless` of a read, the condition of a replacement.
    pub version: Option<Version>,
    /// What the wrapped store did with it so far.
    pub effect: Effect,
    /// What the caller was told so far.
    pub outcome: Outcome,
}

/// What the wrapped store did with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Effect {
    /// It was carried out.
    Applied,
    /// The wrapped store itself does not know.
    InDoubt,
    /// It has not been sent, or its answer has not come.
    NotApplied,
    /// It was sent and the wrapped store refused it.
    Refused(StoreErrorKind),
}

impl Effect {
    pub(super) fn of<T>(result: &Result<T, StoreError>) -> Self {
        match result.as_ref().map_err(StoreError::kind) {
            Ok(_) => Self::Applied,
            Err(StoreErrorKind::InDoubt) => Self::InDoubt,
            Err(kind) => Self::Refused(kind),
        }
    }
}

/// What the caller of an operation was told.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The caller gave up, or panicked, before it was answered.
    Dropped,
    /// An error of this kind.
    Failed(StoreErrorKind),
    /// What a read found.
    Found(Read),
    /// Nothing yet.
    Pending,
    /// The version that a write made.
    Written(Version),
}

impl Call {
    pub(super) fn new(
        op: Op,
        key: &ObjectKey,
        content: Option<&Bytes>,
        version: Option<&Version>,
    ) -> Self {
        Self {
            op,
            key: key.clone(),
            content: content.cloned(),
            version: version.cloned(),
            effect: Effect::NotApplied,
            outcome: Outcome::Pending,
        }
    }
}

/// What an operation answers, in a form that the log keeps.
pub(super) trait Answer: Send + 'static {
    fn outcome(&self) -> Outcome;

    /// The version that it tells.
    fn version(&self) -> Option<Version>;
}

impl Answer for Read {
    fn outcome(&self) -> Outcome {
        Outcome::Found(self.clone())
    }

    fn version(&self) -> Option<Version> {
        match self {
            Self::Found { version, .. } => Some(version.clone()),
            Self::Missing | Self::NotModified => None,
        }
    }
}

impl Answer for Version {
    fn outcome(&self) -> Outcome {
        Outcome::Written(self.clone())
    }

    fn version(&self) -> Option<Version> {
        Some(self.clone())
    }
}

/// A call that has not been answered. Dropping it logs that the caller gave up.
#[derive(Debug)]
pub(super) struct Pending {
    faults: Faults,
    index: usize,
}

impl Pending {
    pub(super) fn new(faults: Faults, index: usize) -> Self {
        Self { faults, index }
    }

    /// Sends the operation to the wrapped store and logs what that did.
    pub(super) async fn apply<T>(
        &self,
        send: BoxFuture<'static, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let result = send.await;
        self.faults.note(self.index, |call| call.effect = Effect::of(&result));
        result
    }

    /// The same, for whoever sends it later.
    pub(super) fn apply_later<T: Answer>(
        &self,
        send: BoxFuture<'static, Result<T, StoreError>>,
    ) -> BoxFuture<'static, Effect> {
        let (faults, index) = (self.faults.clone(), self.index);
        Box::pin(async move {
            let effect = Effect::of(&send.await);
            faults.note(index, |call| call.effect = effect);
            effect
        })
    }

    /// Logs what the caller is told.
    pub(super) fn answered<T: Answer>(self, result: &Result<T, StoreError>) {
        let outcome = match result {
            Ok(answer) => answer.outcome(),
            Err(error) => Outcome::Failed(error.kind()),
        };
        self.faults.note(self.index, |call| call.outcome = outcome);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.faults.note(self.index, |call| {
            if call.outcome == Outcome::Pending {
                call.outcome = Outcome::Dropped;
            }
        });
    }
}
