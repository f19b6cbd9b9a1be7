//! The asynchronous side: blocking work off the runtime's threads, one write of a key at a time.

use crate::{
    LocalOptions, OpenError,
    object::{Job, Memory, Root},
};
use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Version, store::Cause};
use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tokio::{runtime::Handle, sync::OwnedMutexGuard};

/// How many keys are remembered before those that nobody uses are forgotten.
const KEYS_REMEMBERED: usize = 1024;

/// A store in a directory of this machine. Clones share it.
///
/// The [crate's page](crate) has an example, and what the store relies on.
///
/// Operations run on tokio's threads for blocking work and need a tokio runtime. At most one write of
/// a key is under way per store; others wait before the lock without occupying a thread.
#[derive(Clone)]
pub struct LocalStore(Arc<Shared>);

struct Shared {
    root: Root,
    keys: Mutex<HashMap<ObjectKey, Arc<KeyState>>>,
}

/// What the operations on one key share.
#[derive(Default)]
struct KeyState {
    /// Held from before the lock file is waited for until the write has ended, also when its future
    /// was dropped: a lock that never comes then costs one thread, however often it is tried.
    turn: Arc<tokio::sync::Mutex<()>>,
    memory: Memory,
}

impl LocalStore {
    /// Opens the store in the directory `root`, which is created if its parent exists.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says what to do about it: no directory, not writable, or a file system on which
    /// locks may not exclude everybody.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Self::options(root).open()
    }

    /// The same with a choice of what is checked.
    pub fn options(root: impl Into<PathBuf>) -> LocalOptions {
        LocalOptions::new(root.into())
    }

    pub(crate) fn new(root: Root) -> Self {
        Self(Arc::new(Shared { root, keys: Mutex::default() }))
    }

    /// The directory of the store, as an absolute path.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.0.root.directory().path()
    }

    fn state(&self, key: &ObjectKey) -> Arc<KeyState> {
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KEYS_REMEMBERED && !keys.contains_key(key) {
            keys.retain(|_, state| Arc::strong_count(state) > 1 || state.memory.matters());
        }
        Arc::clone(keys.entry(key.clone()).or_default())
    }

    /// Runs a write on a blocking thread once it is its turn.
    async fn write(
        &self,
        key: &ObjectKey,
        write: impl FnOnce(&Root, &Job, &Memory) -> Result<Version, StoreError> + Send + 'static,
    ) -> Result<Version, StoreError> {
        let state = self.state(key);
        let turn = Arc::clone(&state.turn).lock_owned().await;
        self.blocking(key, state, Some(turn), write).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        key: &ObjectKey,
        state: Arc<KeyState>,
        turn: Option<OwnedMutexGuard<()>>,
        work: impl FnOnce(&Root, &Job, &Memory) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(StoreError::Unavailable(Cause::new(format!(
                "{key} was not touched, there is no tokio runtime here; call the store from within one"
            ))));
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        let job = Job { key: key.clone(), cancelled: Arc::clone(&cancelled) };
        let shared = Arc::clone(&self.0);
        let _cancels_when_dropped = CancelOnDrop(cancelled);
        let task = runtime.spawn_blocking(move || {
            let _turn = turn;
            work(&shared.root, &job, &state.memory)
        });
        match task.await {
            Ok(result) => result,
            // A blocking task is cancelled only before it starts.
            Err(error) if error.is_cancelled() => Err(StoreError::Unavailable(Cause::new(
                format!("{key} was not touched, the tokio runtime is shutting down"),
            ))),
            Err(error) => Err(StoreError::InDoubt(Cause::with_source(
                format!(
                    "the operation on {key} panicked, which is a fault of this library; report it"
                ),
                error,
            ))),
        }
    }
}

/// Tells the blocking side that its future is gone.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore").field("root", &self.root()).finish_non_exhaustive()
    }
}

/// # Cancel safety
///
/// A write whose future is dropped gives up right before its rename. If it is past that, it lands; a
/// call that hangs in the kernel lands or gives up when it comes back.
#[async_trait]
impl LeaseStore for LocalStore {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let unless = unless.cloned();
        let state = self.state(key);
        let read =
            move |root: &Root, job: &Job, memory: &Memory| root.read(job, memory, unless.as_ref());
        self.blocking(key, state, None, read).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        self.write(key, move |root, job, memory| root.create(job, memory, &content)).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let version = version.clone();
        self.write(key, move |root, job, memory| root.replace(job, memory, &content, &version))
            .await
    }

    /// No: the lock around compare and rename is the driver's own.
    fn needs_probe(&self) -> bool {
        false
    }

    fn max_object_bytes(&self) -> usize {
        self.0.root.max_object_bytes()
    }
}
