use super::{Directory, FileIdentity, LockError, Step, directory::component, read, split};
use fs2::FileExt;
use rustix::fs::OFlags;
use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// How often a lock file that vanishes while it is waited for is opened again.
const TRIES: u32 = 100;

/// An exclusive lock, held on a file that stays where it is.
///
/// `flock` locks a file, not a path: two processes that lock two files which had one path after
/// each other both "hold the lock". So a lock file is never renamed or unlinked by this crate, and
/// after locking, the file that was locked must be the one at the path, or it is opened again.
///
/// Somebody else may still remove it while the lock is held. [`still_in_place`](Self::still_in_place)
/// tells; ask it right before what the lock protects. What remains is the moment between that answer
/// and the act: nobody may remove lock files of a running service.
///
/// Unlocked when dropped, and by the kernel when the process ends.
///
/// # On an async runtime
///
/// [`acquire`](Self::acquire) blocks without limit and cannot be cancelled: the thread comes back
/// when the lock is free. Call it on a thread for blocking work, let few of them wait (one for each
/// lock file is enough: let the others queue before it), and look after it returns whether anyone
/// still wants the lock.
///
/// ```
/// use fencing::durable::LockFile;
///
/// # let scratch = tempfile::tempdir().unwrap();
/// # let path = scratch.path().join("state.lock");
/// let held = LockFile::acquire(&path)?;
/// assert!(LockFile::try_acquire(&path)?.is_none());
/// assert!(held.still_in_place());
/// drop(held);
/// assert!(LockFile::try_acquire(&path)?.is_some());
/// # Ok::<(), fencing::durable::LockError>(())
/// ```
pub struct LockFile {
    file: File,
    directory: Directory,
    name: OsString,
    identity: FileIdentity,
}

impl LockFile {
    /// Locks the file at `path`, created if it is missing; waits while another holds it.
    ///
    /// # Errors
    ///
    /// [`LockError::NotRegular`] without following or waiting; [`LockError::Unstable`] if the file
    /// is removed again and again; [`LockError::Io`] for what the system refuses.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let (directory, name) = open_parent(path)?;
        acquire(&directory, name)
    }

    /// The same without waiting: `None` while another holds it.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, LockError> {
        let (directory, name) = open_parent(path)?;
        try_acquire(&directory, name)
    }

    /// Whether the locked file is still the one at its path, and its directory at its own.
    ///
    /// `false`: the lock excludes nobody any more, do not act. `false` also if it cannot be told.
    #[must_use]
    pub fn still_in_place(&self) -> bool {
        self.directory.holds(&self.name, self.identity) && self.directory.still_in_place()
    }

    /// Which file is locked.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// The path of the lock file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path_of(&self.name)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing unlocks too, but not while a child process that was being started still has a
        // copy of the handle. `file.unlock()` would be std's.
        let _ = FileExt::unlock(&self.file);
    }
}

impl fmt::Debug for LockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFile")
            .field("path", &self.path())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

pub(super) fn acquire(directory: &Directory, name: &OsStr) -> Result<LockFile, LockError> {
    let locked = lock_what_stays(directory, name, |file| {
        loop {
            match file.lock_exclusive() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => return locked.map(|()| true),
            }
        }
    })?;
    // It waits until it is locked, so `None` cannot be; should it be, no lock is held.
    locked.ok_or_else(|| LockError::Unstable { path: directory.path_of(name), tries: 0 })
}

pub(super) fn try_acquire(
    directory: &Directory,
    name: &OsStr,
) -> Result<Option<LockFile>, LockError> {
    lock_what_stays(directory, name, |file| match file.try_lock_exclusive() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    })
}

fn lock_what_stays(
    directory: &Directory,
    name: &OsStr,
    lock: impl Fn(&File) -> io::Result<bool>,
) -> Result<Option<LockFile>, LockError> {
    let path = directory.path_of(name);
    let io_error = |step, source| LockError::Io { path: path.clone(), step, source };
    component(name).map_err(|source| io_error(Step::Open, source))?;
    for _ in 0..TRIES {
        // With CREATE there is always a file, or an error.
        let opened = read::open_regular(
            std::os::fd::AsFd::as_fd(directory),
            name,
            &path,
            OFlags::RDWR | OFlags::CREATE,
        );
        let Some((handle, stat)) = opened.map_err(LockError::from_read)? else { continue };
        let file = File::from(handle);
        if !lock(&file).map_err(|source| io_error(Step::Lock, source))? {
            return Ok(None);
        }
        let identity = FileIdentity::of(&stat);
        let locked = LockFile { file, directory: directory.clone(), name: name.into(), identity };
        if directory.holds(name, identity) {
            return Ok(Some(locked));
        }
    }
    Err(LockError::Unstable { path, tries: TRIES })
}

fn open_parent(path: &Path) -> Result<(Directory, &OsStr), LockError> {
    let (parent, name) = split(path).map_err(|source| LockError::Io {
        path: path.into(),
        step: Step::OpenDirectory,
        source,
    })?;
    Ok((Directory::open(&parent).map_err(LockError::from_read)?, name))
}
