//! What one instance remembers across restarts, in a directory of its own.
//!
//! | file | what it is |
//! | --- | --- |
//! | `instance.lock` | locked by the one process that runs as this instance; never removed |
//! | `history.json` | the instance's id, and per cluster what it must not forget |
//!
//! The directory belongs to one instance on one machine. A copy of it is a second instance with the
//! same id, which is a fault of configuration: every write carries a nonce, so the copies tell each
//! other apart and at most one acts, but neither is of use to the other.
//!
//! ```text
//! {"format":1,"instance":"0f1e…","clusters":{"orders":{
//!   "last_epoch":7,"opened":{"epoch":7,"tenure":"91b2…","boot_id":"2c8a…","dev":2049,"ino":131},
//!   "last_release":"ab01…","seen_authenticated_lease":true,"largest_ttl_ms":30000,
//!   "newest_snapshot":{"epoch":7,"at":"2026-10-12T09:58:41.517Z"},
//!   "newest_named_snapshot":{"epoch":7,"at":"2026-10-12T09:58:41.517Z"}}}}
//! ```
//!
//! # What is strict, and what is kept
//!
//! Only "no such file" is an instance without a history. A file that is empty, torn, damaged, a
//! symlink, or of a later format is an error when the directory is opened, and is left as it is: an
//! instance that forgets its last epoch may use it again.
//!
//! Fields that this version does not know are kept as they are, at the top and for each cluster, so
//! that a version that is put back does not erase the marks of the one before. A later version that
//! adds a field which an older one *must* heed raises `format`.

mod error;
mod file;
mod marks;

use crate::{
    json::Unreadable,
    key::{ClusterName, InstanceId},
    record::TenureMark,
};
pub use error::{HistoryError, InstanceDirError};
use fencing::durable::{self, Content, Directory, FileIdentity, LockFile, ReadError, WriteError};
use file::Document;
pub use marks::{Forced, History, Opened};
use std::{
    ffi::OsStr,
    io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

const LOCK: &str = "instance.lock";
const HISTORY: &str = "history.json";
/// The largest history, in bytes: some five hundred clusters.
pub const MAX_HISTORY_BYTES: usize = 256 * 1024;

/// An instance's own directory, locked as long as this value lives.
///
/// All of it blocks on the file system: on an async runtime use it on a thread that may block.
///
/// ```
/// use lease_core::{fencing::Epoch, history::InstanceDir, key::ClusterName};
///
/// # let scratch = tempfile::tempdir().unwrap();
/// # let path = scratch.path().join("instance");
/// let orders = ClusterName::new("orders")?;
/// let dir = InstanceDir::open(&path)?;
/// assert!(dir.history(&orders).is_empty());
/// dir.update(&orders, |history| history.last_epoch = Epoch::new(7))?;      // on disk from here on
/// assert!(InstanceDir::open(&path).is_err());                               // one process at a time
///
/// let id = dir.instance_id().clone();
/// drop(dir);
/// let again = InstanceDir::open(&path)?;
/// assert_eq!(again.instance_id(), &id);
/// assert_eq!(again.history(&orders).last_epoch, Epoch::new(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InstanceDir {
    directory: Directory,
    lock: LockFile,
    instance: InstanceId,
    is_new: bool,
    boot_id: Option<String>,
    /// One change at a time; held while the disk works.
    turn: Mutex<()>,
    /// What is on disk; never locked for long.
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    document: Document,
    /// The last write may or may not be on disk, so the next one is made even if nothing changes.
    in_doubt: bool,
}

impl InstanceDir {
    /// Opens the directory, locks it, and reads the history; on first use, generates the instance's
    /// id and stores it.
    ///
    /// The directory is created if it is missing, but not what it is in: a missing parent is more
    /// often a volume that is not mounted than a first start, and an instance that starts on the
    /// bare mount point has forgotten everything.
    ///
    /// # Errors
    ///
    /// [`InstanceDirError::Busy`] if another process has it open; [`InstanceDirError::Unreadable`]
    /// and [`InstanceDirError::TooNew`] for a history that cannot be used, which is left as it is;
    /// the others for what the system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, InstanceDirError> {
        let directory = ensure_directory(path.as_ref())?;
        let lock = directory
            .try_lock(LOCK.as_ref())?
            .ok_or_else(|| InstanceDirError::Busy { path: directory.path().into() })?;
        let name = OsStr::new(HISTORY);
        if let Err(error) = directory.sweep_temporaries(name) {
            tracing::warn!(path = %directory.path().display(), %error, "temporary files remain");
        }
        let (document, is_new) = match directory.read_bounded(name, MAX_HISTORY_BYTES)? {
            Some(content) => (decode(&directory, content)?, false),
            None => (first(&directory, &lock)?, true),
        };
        Ok(Self {
            instance: document.instance.clone(),
            is_new,
            boot_id: durable::boot_id(),
            turn: Mutex::new(()),
            state: Mutex::new(State { document, in_doubt: false }),
            lock,
            directory,
        })
    }

    /// The instance's id: generated once, kept for ever.
    #[must_use]
    pub fn instance_id(&self) -> &InstanceId {
        &self.instance
    }

    /// Whether the id was generated by this very [`open`](Self::open): nobody has seen it before.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Which lock file is held. A copy of the directory has another.
    #[must_use]
    pub fn lock_identity(&self) -> FileIdentity {
        self.lock.identity()
    }

    /// What is remembered of `cluster`; empty if it is nothing. Does not wait for the disk.
    #[must_use]
    pub fn history(&self, cluster: &ClusterName) -> History {
        locked(&self.state).document.history(cluster).cloned().unwrap_or_default()
    }

    /// Changes what is remembered of `cluster`; it is on disk when this returns.
    ///
    /// Marks only go up: a lower `last_epoch`, another `opened` below it, a
    /// `seen_authenticated_lease` that is taken back, and an older snapshot than was written, restored
    /// or named before are not taken over, whatever `change` does.
    /// `opened` raises `last_epoch` along. Nothing is written if nothing changes. If `change` panics,
    /// nothing changes. It must not call `update` itself: changes wait for each other.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Write`] if it is not certainly on disk (the fence of an epoch that is to be
    /// remembered must then stay shut); [`HistoryError::LockLost`] and [`HistoryError::Full`]
    /// without anything written.
    pub fn update(
        &self,
        cluster: &ClusterName,
        change: impl FnOnce(&mut History),
    ) -> Result<(), HistoryError> {
        self.rewrite(cluster, |after, before| {
            change(after);
            after.never_below(before);
        })
    }

    /// An operator has forced a takeover past the protection against rollback, and it was made: the
    /// marks of snapshots are what that decision left, even if that is lower. On disk when this
    /// returns. Nothing else is lowered.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update). The next takeover is then refused like the one before.
    pub fn forced_takeover(
        &self,
        cluster: &ClusterName,
        forced: Forced,
    ) -> Result<(), HistoryError> {
        self.rewrite(cluster, |history, _| history.force(forced))
    }

    fn rewrite(
        &self,
        cluster: &ClusterName,
        change: impl FnOnce(&mut History, &History),
    ) -> Result<(), HistoryError> {
        let _turn = locked(&self.turn);
        let State { mut document, in_doubt } = locked(&self.state).clone();
        let before = document.history(cluster).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after, &before);
        if after == before && !in_doubt {
            return Ok(());
        }
        document.set(cluster, after);
        let written = write(&self.directory, &self.lock, &document.encode());
        self.settle(document, written)
    }

    fn settle(
        &self,
        document: Document,
        written: Result<(), HistoryError>,
    ) -> Result<(), HistoryError> {
        let in_doubt = matches!(written, Err(HistoryError::Write(WriteError::InDoubt { .. })));
        if written.is_ok() || in_doubt {
            // What may be on disk is remembered: the next write must not lower it.
            *locked(&self.state) = State { document, in_doubt };
        }
        written
    }

    /// What to remember as [`History::opened`] before the fence of this tenure opens: that this very
    /// lock was held, in this boot of the machine.
    #[must_use]
    pub fn opening(&self, tenure: TenureMark) -> Opened {
        Opened { tenure, boot_id: self.boot_id.clone(), lock: self.lock.identity() }
    }

    /// The tenure that this instance may take back at once after a restart, if the lease is still
    /// written by it: one whose fence was opened, under the lock file that is locked now, in this boot.
    ///
    /// Whoever opened that fence held this lock, and has ended: the lock is free for us, and an
    /// inode is not given to another file while a process has it open. A copied directory has
    /// another lock file, another machine another boot id.
    #[must_use]
    pub fn reclaimable(&self, cluster: &ClusterName) -> Option<TenureMark> {
        let opened = locked(&self.state).document.history(cluster)?.opened.clone()?;
        let same_boot = opened.boot_id.is_some() && opened.boot_id == self.boot_id;
        let same_lock = opened.lock == self.lock.identity() && self.lock.still_in_place();
        (same_boot && same_lock).then_some(opened.tenure)
    }
}

/// Whatever panicked while it held the lock left what it guards as it was: all of it is replaced in
/// one step, at the end.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ensure_directory(path: &Path) -> Result<Directory, ReadError> {
    match Directory::open(path) {
        Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent == Path::new("") { Path::new(".") } else { parent };
            Directory::open(parent)?.ensure_subdirectory(name)
        }
        _ => Directory::open(path),
    }
}

fn decode(directory: &Directory, content: Content) -> Result<Document, InstanceDirError> {
    let path = || directory.path().join(HISTORY);
    let content = match content {
        Content::Whole(content) => content,
        Content::Oversize(_) => {
            let why = Unreadable::TooLarge { bytes_max: MAX_HISTORY_BYTES };
            return Err(InstanceDirError::Unreadable { path: path(), why });
        }
    };
    match Document::decode(&content) {
        Ok(document) => Ok(document),
        Err(file::Refused::TooNew(format)) => {
            Err(InstanceDirError::TooNew { path: path(), format })
        }
        Err(file::Refused::Unreadable(why)) => {
            Err(InstanceDirError::Unreadable { path: path(), why })
        }
    }
}

/// The document of an instance that did not exist so far, on disk.
fn first(directory: &Directory, lock: &LockFile) -> Result<Document, InstanceDirError> {
    let document = Document::new(InstanceId::random()?);
    // Created, not replaced: whatever appeared there since it was looked for stays.
    directory
        .create_new(HISTORY.as_ref(), document.encode().as_bytes(), || in_place(lock))
        .map_err(InstanceDirError::Write)?;
    Ok(document)
}

fn write(directory: &Directory, lock: &LockFile, text: &str) -> Result<(), HistoryError> {
    let path = || directory.path().join(HISTORY);
    if text.len() > MAX_HISTORY_BYTES {
        return Err(HistoryError::Full { path: path() });
    }
    match directory.replace(HISTORY.as_ref(), text.as_bytes(), || in_place(lock)) {
        Err(WriteError::NotWritten { step: durable::Step::BeforeRename, .. }) => {
            Err(HistoryError::LockLost { path: lock.path() })
        }
        written => Ok(written?),
    }
}

fn in_place(lock: &LockFile) -> io::Result<()> {
    let lost = || io::Error::other("the lock file was removed or its directory moved");
    lock.still_in_place().then_some(()).ok_or_else(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencing::Epoch;
    use fencing::durable::Step;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_write_in_doubt_is_remembered_and_made_again() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = InstanceDir::open(scratch.path()).unwrap();
        let orders = ClusterName::new("orders").unwrap();
        let file = scratch.path().join(HISTORY);
        let inode = || std::fs::metadata(&file).unwrap().ino();

        let mut document = locked(&dir.state).document.clone();
        document.set(&orders, History { last_epoch: Epoch::new(8), ..History::default() });
        let in_doubt = WriteError::InDoubt {
            path: file.clone(),
            step: Step::SyncDirectory,
            source: io::Error::other("on purpose"),
        };
        dir.settle(document, Err(HistoryError::Write(in_doubt))).unwrap_err();
        assert_eq!(dir.history(&orders).last_epoch, Epoch::new(8));

        let before = inode();
        dir.update(&orders, |_| ()).unwrap();
        assert_ne!(inode(), before, "what is in doubt is written again, changed or not");
        let certain = inode();
        dir.update(&orders, |_| ()).unwrap();
        assert_eq!(inode(), certain);
    }

    #[test]
    fn what_was_not_written_is_not_remembered() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = InstanceDir::open(scratch.path()).unwrap();
        let orders = ClusterName::new("orders").unwrap();
        let mut document = locked(&dir.state).document.clone();
        document.set(&orders, History { last_epoch: Epoch::new(8), ..History::default() });
        let not_written = WriteError::NotWritten {
            path: scratch.path().join(HISTORY),
            step: Step::Write,
            source: io::Error::other("on purpose"),
        };
        dir.settle(document, Err(HistoryError::Write(not_written))).unwrap_err();
        assert!(dir.history(&orders).is_empty());
    }
}
