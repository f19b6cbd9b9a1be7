//! The names in a directory, one step at a time.

use super::{
    Directory, FILE_MODE, FileIdentity, FileKind, ReadError, Step, WriteError,
    directory::component, read, write::refused_without_effect,
};
use rustix::{
    fs::{AtFlags, Dir, FileType, OFlags, linkat, openat, renameat, statat, unlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::AsFd as _, unix::ffi::OsStringExt as _},
};

/// What is under a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Which file it is: two names with one identity are one file.
    pub identity: FileIdentity,
    /// Of what kind.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size: u64,
}

/// Names, each change on disk when it is reported.
///
/// ```
/// use fencing::durable::Directory;
///
/// # let scratch = tempfile::tempdir().unwrap();
/// let root = Directory::open(scratch.path())?;
/// root.replace("state".as_ref(), b"7", || Ok(()))?;
/// root.link("state".as_ref(), "state.bak".as_ref())?;
/// assert_eq!(root.entry("state".as_ref())?, root.entry("state.bak".as_ref())?);
/// root.replace("state.new".as_ref(), b"8", || Ok(()))?;
/// root.rename("state.new".as_ref(), "state".as_ref(), || Ok(()))?;
/// assert_eq!(root.names()?, ["state", "state.bak"]);
/// assert!(root.remove("state.bak".as_ref())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Directory {
    /// Every name in it, sorted as bytes, without `.` and `..`.
    ///
    /// # Errors
    ///
    /// What the system said; there is no partial answer.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.as_fd())? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// What is there under `name`, without opening or following it. `None`: nothing.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] if it cannot be told.
    pub fn entry(&self, name: &OsStr) -> Result<Option<Entry>, ReadError> {
        let io_error =
            |source| ReadError::Io { path: self.path_of(name), step: Step::Stat, source };
        component(name).map_err(io_error)?;
        match statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry {
                identity: FileIdentity::of(&stat),
                kind: FileKind::of(FileType::from_raw_mode(stat.st_mode)),
                size: u64::try_from(stat.st_size).unwrap_or(0),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(io_error(errno.into())),
        }
    }

    /// A new, empty file of this name, open for reading and writing.
    ///
    /// Neither the name nor what is written is on disk before [`File::sync_all`] and
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if anything is there, be it a dangling symlink;
    /// [`WriteError::NotWritten`] for what the system refuses.
    pub fn create_file(&self, name: &OsStr) -> Result<File, WriteError> {
        let step = Step::CreateTemporary;
        component(name).map_err(|source| self.not_changed(name, step, source))?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(self.as_fd(), name, flags, FILE_MODE) {
            Ok(file) => Ok(file.into()),
            Err(Errno::EXIST) => Err(WriteError::AlreadyExists { path: self.path_of(name) }),
            Err(errno) => Err(self.not_changed(name, step, errno.into())),
        }
    }

    /// Opens a regular file for reading, without following a symlink and without blocking. `None`:
    /// there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotRegular`] for anything else that is there; [`ReadError::Io`] for what the
    /// system refuses.
    pub fn open_file(&self, name: &OsStr) -> Result<Option<File>, ReadError> {
        let path = self.path_of(name);
        component(name).map_err(|source| ReadError::Io {
            path: path.clone(),
            step: Step::Open,
            source,
        })?;
        let opened = read::open_regular(self.as_fd(), name, &path, OFlags::RDONLY)?;
        Ok(opened.map(|(handle, _)| handle.into()))
    }

    /// Gives the file `from` the second name `to`, and syncs the directory.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if anything is at `to`; [`WriteError::NotWritten`] without a
    /// second name, [`WriteError::InDoubt`] where there may be one. Some file systems have no links.
    pub fn link(&self, from: &OsStr, to: &OsStr) -> Result<(), WriteError> {
        for name in [from, to] {
            component(name).map_err(|source| self.not_changed(to, Step::Link, source))?;
        }
        match linkat(self.as_fd(), from, self.as_fd(), to, AtFlags::empty()) {
            Ok(()) => self.synced(to),
            Err(Errno::EXIST) => Err(WriteError::AlreadyExists { path: self.path_of(to) }),
            Err(errno) => Err(self.failed(to, Step::Link, errno)),
        }
    }

    /// Renames the file `from` to `to`, which it replaces, and syncs the directory.
    ///
    /// `before_rename` as in [`replace`](Self::replace). The content of `from` must be on disk
    /// before.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotWritten`] with both names unchanged, [`WriteError::InDoubt`] if it may be
    /// renamed; a veto is [`WriteError::NotWritten`] at [`Step::BeforeRename`].
    pub fn rename(
        &self,
        from: &OsStr,
        to: &OsStr,
        before_rename: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), WriteError> {
        for name in [from, to] {
            component(name).map_err(|source| self.not_changed(to, Step::Rename, source))?;
        }
        before_rename().map_err(|source| self.not_changed(to, Step::BeforeRename, source))?;
        match renameat(self.as_fd(), from, self.as_fd(), to) {
            Ok(()) => self.synced(to),
            Err(errno) => Err(self.failed(to, Step::Rename, errno)),
        }
    }

    /// Removes the name `name` and syncs the directory; `false` if there was nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotWritten`] if it is still there, [`WriteError::InDoubt`] if it may be.
    pub fn remove(&self, name: &OsStr) -> Result<bool, WriteError> {
        component(name).map_err(|source| self.not_changed(name, Step::Remove, source))?;
        match unlinkat(self.as_fd(), name, AtFlags::empty()) {
            Ok(()) => self.synced(name).map(|()| true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed(name, Step::Remove, errno)),
        }
    }

    fn synced(&self, name: &OsStr) -> Result<(), WriteError> {
        self.sync().map_err(|source| WriteError::InDoubt {
            path: self.path_of(name),
            step: Step::SyncDirectory,
            source,
        })
    }

    fn failed(&self, name: &OsStr, step: Step, errno: Errno) -> WriteError {
        if refused_without_effect(errno) {
            return self.not_changed(name, step, errno.into());
        }
        WriteError::InDoubt { path: self.path_of(name), step, source: errno.into() }
    }

    fn not_changed(&self, name: &OsStr, step: Step, source: io::Error) -> WriteError {
        WriteError::NotWritten { path: self.path_of(name), step, source }
    }
}
