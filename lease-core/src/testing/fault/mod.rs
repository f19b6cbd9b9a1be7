//! A store that fails on purpose.
//!
//! ```text
//!   caller ──► log ──► fault? ──────────────► the wrapped store
//!     ▲                 │ Fail: not sent        │
//!     │                 │ LandLater: sent when the test says so
//!     └───── answer ◄───┴ ApplyThen…: sent, but the answer is another one, or none
//! ```

mod log;
mod release;
mod script;

pub use log::{Call, Effect, Outcome};
pub use release::{Hold, Late};
pub use script::{Fault, Faults, Op};

use crate::{
    key::ObjectKey,
    probe::{ProbeCleaner, ProbeKey},
    store::{Cause, LeaseStore, Read, StoreError, StoreErrorKind, Version},
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use log::{Answer, Pending};
use std::{future::pending, sync::Arc};

/// Any store, with the faults that a test asks for.
///
/// Clones share the store, the faults and the log.
///
/// ```
/// use bytes::Bytes;
/// use lease_core::{
///     LeaseStore, ObjectKey, StoreErrorKind,
///     testing::{Fault, FaultStore, Late, MemoryStore, Op},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = FaultStore::new(MemoryStore::new());
/// let (faults, key) = (store.faults(), ObjectKey::new("orders/lease.json")?);
///
/// // The write lands, its reply is lost.
/// faults.next(Op::Create, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
/// let lost = store.create_if_absent(&key, Bytes::from("one")).await.unwrap_err();
/// assert_eq!(lost.kind(), StoreErrorKind::InDoubt);
/// let first = store.inner().version(&key).expect("it landed");
///
/// // The write is on its way for a while.
/// let late = Late::new();
/// faults.next(Op::Replace, Fault::LandLater(late.clone()));
/// store.replace_if_match(&key, Bytes::from("two"), &first).await.unwrap_err();
/// assert_eq!(store.inner().content(&key).unwrap(), "one");
/// late.land().await;
/// assert_eq!(store.inner().content(&key).unwrap(), "two");
/// assert_eq!(faults.calls().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FaultStore<S> {
    inner: Arc<S>,
    faults: Faults,
}

impl<S> Clone for FaultStore<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), faults: self.faults.clone() }
    }
}

impl<S: LeaseStore> FaultStore<S> {
    /// Wraps `inner`. Without a fault every operation passes through.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { inner: Arc::new(inner), faults: Faults::default() }
    }

    /// The wrapped store: what a test asks without being logged, and without faults.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// What the test scripts the faults with and reads the log from.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    async fn run<T: Answer>(
        &self,
        call: Call,
        send: BoxFuture<'static, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let what = format!("{} of {}", call.op, call.key);
        let reads = call.op == Op::Read;
        let (pending, fault) = self.faults.begin(call);
        let result = Self::meet(&pending, fault, &what, reads, send).await;
        pending.answered(&result);
        result
    }

    async fn meet<T: Answer>(
        call: &Pending,
        fault: Fault,
        what: &str,
        reads: bool,
        send: BoxFuture<'static, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match fault {
            Fault::Pass => call.apply(send).await,
            Fault::Fail(kind) => {
                // "Corrupt" comes with the version that the object really has, so that it can be
                // replaced. A read changes nothing, so it may be sent for that.
                let version = match kind {
                    StoreErrorKind::Corrupt if reads => send.await.ok().and_then(|a| a.version()),
                    _ => None,
                };
                Err(injected(kind, what, "not applied", version))
            }
            Fault::ApplyThenFail(kind) => {
                let version = call.apply(send).await.ok().and_then(|answer| answer.version());
                Err(injected(kind, what, "applied", version))
            }
            Fault::Hang => pending().await,
            Fault::ApplyThenHang => {
                let _unheard = call.apply(send).await;
                pending().await
            }
            Fault::Hold(hold) => {
                hold.released().await;
                call.apply(send).await
            }
            Fault::ApplyThenHold(hold) => {
                let result = call.apply(send).await;
                hold.released().await;
                result
            }
            Fault::LandLater(late) => {
                late.push(call.apply_later(send));
                Err(injected(StoreErrorKind::InDoubt, what, "it may land later", None))
            }
            Fault::HangAndLandLater(late) => {
                late.push(call.apply_later(send));
                pending().await
            }
            Fault::Panic => injected_panic(what),
        }
    }
}

#[expect(clippy::panic, reason = "a store that panics is what the test asked for")]
fn injected_panic(what: &str) -> ! {
    panic!("injected fault: {what} panics")
}

fn injected(
    kind: StoreErrorKind,
    what: &str,
    applied: &str,
    version: Option<Version>,
) -> StoreError {
    let cause = Cause::new(format!("injected fault: {what}, {applied}"));
    match kind {
        StoreErrorKind::Contended => StoreError::Contended(cause),
        StoreErrorKind::Corrupt => {
            let version = version.unwrap_or_else(|| Version::new("injected-fault"));
            StoreError::Corrupt { version, cause }
        }
        StoreErrorKind::InDoubt => StoreError::InDoubt(cause),
        StoreErrorKind::Precondition => StoreError::Precondition(cause),
        StoreErrorKind::Unavailable => StoreError::Unavailable(cause),
        StoreErrorKind::Unsupported => StoreError::Unsupported(cause),
    }
}

#[async_trait]
impl<S: LeaseStore> LeaseStore for FaultStore<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let call = Call::new(Op::Read, key, None, unless);
        let (inner, key, unless) = (Arc::clone(&self.inner), key.clone(), unless.cloned());
        let send = async move { inner.read_versioned(&key, unless.as_ref()).await };
        self.run(call, Box::pin(send)).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        let call = Call::new(Op::Create, key, Some(&content), None);
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let send = async move { inner.create_if_absent(&key, content).await };
        self.run(call, Box::pin(send)).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let call = Call::new(Op::Replace, key, Some(&content), Some(version));
        let (inner, key, version) = (Arc::clone(&self.inner), key.clone(), version.clone());
        let send = async move { inner.replace_if_match(&key, content, &version).await };
        self.run(call, Box::pin(send)).await
    }

    fn needs_probe(&self) -> bool {
        self.inner().needs_probe()
    }

    fn max_object_bytes(&self) -> usize {
        self.inner().max_object_bytes()
    }
}

/// Passes through, without faults and without being logged.
#[async_trait]
impl<S: LeaseStore + ProbeCleaner> ProbeCleaner for FaultStore<S> {
    async fn remove_probe_object(&self, key: &ProbeKey) -> Result<(), StoreError> {
        self.inner.remove_probe_object(key).await
    }
}
