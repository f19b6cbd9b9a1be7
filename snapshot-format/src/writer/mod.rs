//! Storing a snapshot, through the fence.
//!
//! ```text
//! check the fence → read, seal → check the fence → visible
//! ```
//!
//! The second check stands right before the request that makes the object visible. A process can be
//! paused between the two all the same; so the key carries the epoch, and what lands late sorts
//! behind everything of a later epoch.
//!
//! | size of the database | how it is stored | nobody's object is overwritten, since |
//! | --- | --- | --- |
//! | up to [`Writer::single_put_max`], 8 MiB | one PUT | it creates, only if the key is absent |
//! | more | multipart, in parts of [`Writer::part_bytes`] | the key has a random [suffix](crate::name::Suffix), and is seen to be absent before the first part |
//!
//! Multipart has no create-only mode in `object_store`. It is aborted when the fence shuts, when
//! `stop` is ready, and on every error.
//!
//! # In doubt
//!
//! A request that failed may have been carried out, or may be yet. The writer then looks: its own
//! object, told by the random bytes that it starts with, is stored; another's is
//! [`WriteError::Taken`]; otherwise the write is [in doubt](WriteError::InDoubt). A snapshot in doubt is not
//! to be named in the lease; the next one has another name and settles it.
//!
//! # Memory
//!
//! Twice the size of the database for one PUT, one part and a few chunks for multipart.

mod error;
mod seal;
mod store;

use crate::{
    cipher::Cipher,
    header::Header,
    name::{Layout, Mark, SnapshotName, SnapshotTime, Suffix},
};
pub use error::WriteError;
use fencing::{Clock, Epoch, Fence, SystemClock};
use lease_core::key::InstanceId;
use object_store::{ObjectStore, path::Path};
use std::{fmt, io::Read, sync::Arc};

/// The default of [`Writer::single_put_max`], 8 MiB.
pub const SINGLE_PUT_MAX: usize = 8 * 1024 * 1024;
/// The default and the least of [`Writer::part_bytes`], 5 MiB: S3 takes none that is smaller.
pub const PART_BYTES: usize = 5 * 1024 * 1024;
/// S3 takes no more parts than these.
const MAX_PARTS: usize = 10_000;

/// Stores snapshots for the active instance.
///
/// One for each process, so that names never go back: it remembers its last one, and within an epoch
/// the next is later, whatever the wall clock does.
///
/// ```
/// use snapshot_format::{
///     Catalog, Writer,
///     cipher::Cipher,
///     fencing::{Clock as _, Epoch, FenceControl, SystemClock},
///     lease_core::{auth::ClusterSecret, key::{ClusterName, InstanceId}},
///     name::{Application, Layout},
///     object_store::memory::InMemory,
/// };
/// use std::{future, sync::Arc, time::Duration};
///
/// # futures_executor::block_on(async {
/// # let clock = SystemClock::new();
/// # let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock));
/// # control.open(clock.reading(), Duration::from_secs(20))?;
/// let layout = Layout::new(Application::new("orders")?, ClusterName::new("prod")?);
/// let cipher = Cipher::new(&ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?);
/// let store = Arc::new(InMemory::new());
/// let mut writer = Writer::new(store.clone(), layout.clone(), cipher.clone(), InstanceId::random()?);
///
/// let fence = control.fence();                    // `tenure.fence()`
/// let database = &b"a database"[..];              // a file that nobody writes to
/// let stored = writer.write(&fence, database, future::pending()).await?;
/// let catalog = Catalog::new(store, layout, cipher);
/// assert_eq!(catalog.highest_epoch().await?, Some(stored.header.epoch));
///
/// drop(control);                                  // the tenure ends
/// assert!(writer.write(&fence, database, future::pending()).await.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Writer {
    store: Arc<dyn ObjectStore>,
    layout: Layout,
    cipher: Cipher,
    instance: InstanceId,
    clock: Arc<dyn Clock>,
    single_put_max: usize,
    part_bytes: usize,
    last: Option<Mark>,
}

/// A snapshot that is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stored {
    /// Its key.
    pub key: Path,
    /// What it says about itself; [`Header::name`] is its name, whose mark the lease is to name.
    pub header: Header,
    /// The size of the database in bytes.
    pub database_bytes: u64,
    /// The size of the object in bytes.
    pub sealed_bytes: u64,
}

impl Writer {
    /// A writer of `instance`'s snapshots.
    #[must_use]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        layout: Layout,
        cipher: Cipher,
        instance: InstanceId,
    ) -> Self {
        Self {
            store,
            layout,
            cipher,
            instance,
            clock: Arc::new(SystemClock::new()),
            single_put_max: SINGLE_PUT_MAX,
            part_bytes: PART_BYTES,
            last: None,
        }
    }

    /// The largest database, in bytes, that is stored by one PUT. Default 8 MiB. S3 takes 5 GiB at
    /// most, and it is held in memory.
    #[must_use]
    pub fn single_put_max(self, bytes: usize) -> Self {
        Self { single_put_max: bytes, ..self }
    }

    /// The size of a part of a larger one, in bytes. Default, and the least, 5 MiB. There can be
    /// 10 000 parts, so that the default stores 48 GiB.
    #[must_use]
    pub fn part_bytes(self, bytes: usize) -> Self {
        Self { part_bytes: bytes.max(PART_BYTES), ..self }
    }

    /// The newest snapshot that this instance knows of: names start behind it. For a process that
    /// makes a second writer within one tenure.
    #[must_use]
    pub fn after(self, mark: Mark) -> Self {
        Self { last: self.last.max(Some(mark)), ..self }
    }

    /// Where time comes from. For tests; default: the machine's clocks.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The mark of the last name that it gave, whether that was stored or not.
    #[must_use]
    pub fn last(&self) -> Option<Mark> {
        self.last
    }

    /// Stores a snapshot of `database`, which is read to its end on a thread of its own, under the
    /// epoch of `fence`. Call it with one that is not written to: the copy that `VACUUM INTO` made.
    ///
    /// `stop` is asked while requests are under way; once it is ready, nothing more is sent but an
    /// abort. Give it what tells the loss of the lease, `lost.cancelled()`; the fence alone is
    /// looked at between requests only.
    ///
    /// # Errors
    ///
    /// [`WriteError`] says what is known of the object. Whether one is stored is only open for
    /// [`WriteError::InDoubt`].
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the write is in doubt, parts that were sent stay until the store's own rule
    /// removes them, and the thread ends at its next chunk. Let `stop` be ready instead.
    pub async fn write(
        &mut self,
        fence: &Fence,
        database: impl Read + Send + 'static,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Stored, WriteError> {
        fence.check()?;
        let name = self.next_name(fence.epoch());
        let suffix =
            Suffix::random().map_err(|error| WriteError::Platform(std::io::Error::other(error)))?;
        let header = |name: SnapshotName| Header {
            cluster: self.layout.cluster().clone(),
            epoch: name.epoch(),
            instance_id: self.instance.clone(),
            created_at: name.at(),
            suffix: name.suffix(),
        };
        let sealing = seal::Job {
            cipher: self.cipher.clone(),
            application: self.layout.application().clone(),
            small: header(name),
            large: header(name.with_suffix(suffix)),
            small_max: self.single_put_max,
        };
        store::store(self, fence, sealing, database, stop).await
    }

    /// A name later than the last of this epoch.
    fn next_name(&mut self, epoch: Epoch) -> SnapshotName {
        let now = SnapshotTime::from_wall(self.clock.reading().wall);
        let at = match self.last {
            Some(last) if last.epoch == epoch => now.max(last.at.next()),
            _ => now,
        };
        let name = SnapshotName::new(at, epoch);
        self.last = self.last.max(Some(name.mark()));
        name
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("store", &self.store)
            .field("layout", &self.layout)
            .field("instance", &self.instance)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Application;
    use fencing::{FenceControl, testing::ManualClock};
    use futures_executor::block_on;
    use lease_core::{auth::ClusterSecret, key::ClusterName};
    use object_store::memory::InMemory;
    use std::{future::pending, time::Duration};

    #[test]
    fn more_parts_than_a_store_takes_are_an_error_and_nothing_is_stored() {
        let clock = ManualClock::new();
        let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
        control.open(clock.reading(), Duration::from_secs(20)).unwrap();
        let layout =
            Layout::new(Application::new("orders").unwrap(), ClusterName::new("prod").unwrap());
        let cipher = Cipher::new(&ClusterSecret::new(b"0123456789abcdef0123456789abcdef").unwrap());
        let store = Arc::new(InMemory::new());
        let instance = InstanceId::new("s-1").unwrap();
        let mut writer = Writer::new(store.clone(), layout.clone(), cipher.clone(), instance);
        (writer.single_put_max, writer.part_bytes) = (0, 1);
        let database = std::io::Cursor::new(vec![0; 20_000]);
        let error = block_on(writer.write(&control.fence(), database, pending())).unwrap_err();
        assert!(matches!(error, WriteError::TooLarge { part_bytes: 1 }), "{error}");
        let catalog = crate::Catalog::new(store, layout, cipher);
        assert!(block_on(catalog.list()).unwrap().is_empty());
    }
}
