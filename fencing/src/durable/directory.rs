use super::{
    Content, DIRECTORY_MODE, FileIdentity, FileKind, LockError, LockFile, ReadError, Step,
    WriteError, lock, read, write,
};
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, statat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// An open directory, and the operations of this module on the files in it.
///
/// Names are single components: no `/`, no `.` or `..`. A symlink is followed in the path that
/// [`open`](Self::open) is given (an operator's choice) and nowhere below.
///
/// Clones share the handle. The path is what messages show; files are opened relative to the handle,
/// so a directory that is renamed takes its handle along: see
/// [`still_in_place`](Self::still_in_place).
///
/// ```
/// use fencing::durable::{Content, Directory};
///
/// # let scratch = tempfile::tempdir().unwrap();
/// let root = Directory::open(scratch.path())?;
/// let orders = root.ensure_subdirectory("orders".as_ref())?;
/// orders.replace("state".as_ref(), b"7", || Ok(()))?;
/// assert_eq!(orders.read_bounded("state".as_ref(), 100)?, Some(Content::Whole(b"7".to_vec())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Directory(Arc<Inner>);

struct Inner {
    handle: File,
    path: PathBuf,
    identity: FileIdentity,
    /// The directory that it was opened from, and its name there.
    parent: Option<(Directory, OsString)>,
}

impl Directory {
    /// Opens the directory at `path`, following symlinks on the way.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] if it cannot be opened; it is not created.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::open_at(CWD, path.as_os_str(), path.into(), None)
    }

    /// Opens the directory `name` in this one. `None`: there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotRegular`] if it is no directory, also if it is a symlink to one.
    pub fn subdirectory(&self, name: &OsStr) -> Result<Option<Self>, ReadError> {
        let path = self.path_of(name);
        component(name).map_err(|source| io_error(&path, Step::OpenDirectory, source))?;
        let parent = Some((self.clone(), name.into()));
        match Self::open_at(self.as_fd(), name, path, parent) {
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Opens the directory `name` in this one, created if it is missing.
    ///
    /// This directory is synced either way: another process may have created the other and been
    /// killed before it did so.
    ///
    /// # Errors
    ///
    /// As [`subdirectory`](Self::subdirectory); the system's if it cannot be created or synced.
    pub fn ensure_subdirectory(&self, name: &OsStr) -> Result<Self, ReadError> {
        let path = self.path_of(name);
        component(name).map_err(|source| io_error(&path, Step::CreateDirectory, source))?;
        match mkdirat(self.as_fd(), name, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(io_error(&path, Step::CreateDirectory, errno.into())),
        }
        self.sync().map_err(|source| io_error(&path, Step::SyncDirectory, source))?;
        Self::open_at(self.as_fd(), name, path, Some((self.clone(), name.into())))
    }

    fn open_at(
        at: BorrowedFd<'_>,
        name: &OsStr,
        path: PathBuf,
        parent: Option<(Self, OsString)>,
    ) -> Result<Self, ReadError> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if parent.is_some() {
            flags |= OFlags::NOFOLLOW;
        }
        let handle = match openat(at, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(errno) => {
                let found = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode));
                return match found {
                    // Followed symlinks report for themselves: the path is the operator's.
                    Ok(FileType::Directory) | Err(_) => {
                        Err(io_error(&path, Step::OpenDirectory, errno.into()))
                    }
                    Ok(FileType::Symlink) if parent.is_none() => {
                        Err(io_error(&path, Step::OpenDirectory, errno.into()))
                    }
                    Ok(other) => Err(ReadError::NotRegular { path, found: FileKind::of(other) }),
                };
            }
        };
        let stat = fstat(&handle).map_err(|errno| io_error(&path, Step::Stat, errno.into()))?;
        let identity = FileIdentity::of(&stat);
        Ok(Self(Arc::new(Inner { handle: handle.into(), path, identity, parent })))
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Which directory it is.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.0.identity
    }

    /// Whether the path that it was opened by still leads here, each component of it below the first
    /// directory without symlinks.
    ///
    /// `false` also if that cannot be told. A few `stat` calls, one for each level.
    #[must_use]
    pub fn still_in_place(&self) -> bool {
        match &self.0.parent {
            None => {
                stat_identity(CWD, self.0.path.as_os_str(), AtFlags::empty())
                    == Some(self.0.identity)
            }
            Some((parent, name)) => parent.holds(name, self.0.identity) && parent.still_in_place(),
        }
    }

    /// `fsync` of the directory: what was created in it or renamed stays so after a power cut.
    ///
    /// # Errors
    ///
    /// What the system said. What is on disk is then not known, and a later success does not prove
    /// that it is.
    pub fn sync(&self) -> io::Result<()> {
        self.0.handle.sync_all()
    }

    /// [`read_bounded`](super::read_bounded) of a file in this directory.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn read_bounded(&self, name: &OsStr, limit: usize) -> Result<Option<Content>, ReadError> {
        let path = self.path_of(name);
        component(name).map_err(|source| io_error(&path, Step::Open, source))?;
        read::read_at(self.as_fd(), name, &path, limit)
    }

    /// What is there under `name`, without opening or following it. `None`: nothing.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] if it cannot be told.
    pub fn kind_of(&self, name: &OsStr) -> Result<Option<FileKind>, ReadError> {
        let path = self.path_of(name);
        component(name).map_err(|source| io_error(&path, Step::Stat, source))?;
        match statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileKind::of(FileType::from_raw_mode(stat.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(io_error(&path, Step::Stat, errno.into())),
        }
    }

    /// [`replace`](super::replace) of a file in this directory.
    ///
    /// `before_rename` runs when all is ready and only the rename remains: the last moment to look
    /// whether a lock still stands or the caller has gone away. Its error vetoes the write.
    ///
    /// # Errors
    ///
    /// As there; a veto is [`WriteError::NotWritten`] at [`Step::BeforeRename`].
    pub fn replace(
        &self,
        name: &OsStr,
        content: &[u8],
        before_rename: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), WriteError> {
        write::write(self, name, content, write::Target::Replaced, before_rename)
    }

    /// [`create_new`](super::create_new) of a file in this directory, with `before_rename` as in
    /// [`replace`](Self::replace).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_new(
        &self,
        name: &OsStr,
        content: &[u8],
        before_rename: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), WriteError> {
        write::write(self, name, content, write::Target::Created, before_rename)
    }

    /// Removes the temporary files of earlier writes of `name` that were killed before they ended;
    /// returns how many.
    ///
    /// Nobody may be writing `name` meanwhile: call it under the lock that guards its writes.
    ///
    /// # Errors
    ///
    /// What the system said; some may have been removed.
    pub fn sweep_temporaries(&self, name: &OsStr) -> io::Result<usize> {
        component(name)?;
        write::sweep_temporaries(self, name)
    }

    /// [`LockFile::acquire`] for a file in this directory.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn lock(&self, name: &OsStr) -> Result<LockFile, LockError> {
        lock::acquire(self, name)
    }

    /// [`LockFile::try_acquire`] for a file in this directory.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_lock(&self, name: &OsStr) -> Result<Option<LockFile>, LockError> {
        lock::try_acquire(self, name)
    }

    /// The path of a file in it, for messages.
    pub(super) fn path_of(&self, name: &OsStr) -> PathBuf {
        self.0.path.join(name)
    }

    /// Whether `name` in this directory is that very file, not followed.
    pub(super) fn holds(&self, name: &OsStr, identity: FileIdentity) -> bool {
        stat_identity(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) == Some(identity)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.handle.as_fd()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.0.path).finish()
    }
}

/// Refuses what would lead out of the directory.
pub(super) fn component(name: &OsStr) -> io::Result<()> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name is no single path component",
        ));
    }
    Ok(())
}

fn stat_identity(at: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Option<FileIdentity> {
    statat(at, name, flags).ok().map(|stat| FileIdentity::of(&stat))
}

fn io_error(path: &Path, step: Step, source: io::Error) -> ReadError {
    ReadError::Io { path: path.into(), step, source }
}
