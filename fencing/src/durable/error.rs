use rustix::fs::FileType;
use std::{fmt, io, path::PathBuf};

/// What a path leads to that is no regular file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileKind {
    /// A block or character device.
    Device,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A symbolic link, wherever it points.
    Symlink,
    /// A regular file, where a directory was asked for.
    Regular,
    /// What the platform has no name for.
    Unknown,
}

impl FileKind {
    pub(super) fn of(kind: FileType) -> Self {
        match kind {
            FileType::BlockDevice | FileType::CharacterDevice => Self::Device,
            FileType::Directory => Self::Directory,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::Symlink => Self::Symlink,
            FileType::RegularFile => Self::Regular,
            FileType::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "a device",
            Self::Directory => "a directory",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Symlink => "a symbolic link",
            Self::Regular => "a regular file",
            Self::Unknown => "of an unknown kind",
        })
    }
}

/// What was being done when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Opening the directory that the file is in.
    OpenDirectory,
    /// Creating a directory.
    CreateDirectory,
    /// Opening the file.
    Open,
    /// Asking for the file's metadata.
    Stat,
    /// Reading the file.
    Read,
    /// Taking the lock on the file.
    Lock,
    /// Creating the temporary file.
    CreateTemporary,
    /// Writing the temporary file.
    Write,
    /// `fsync` of the temporary file.
    SyncFile,
    /// What the caller wanted looked at before the rename.
    BeforeRename,
    /// Renaming the temporary file, or another, to its target.
    Rename,
    /// Giving the file a second name.
    Link,
    /// Removing the name of the file.
    Remove,
    /// `fsync` of the directory.
    SyncDirectory,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenDirectory => "opening its directory",
            Self::CreateDirectory => "creating the directory",
            Self::Open => "opening it",
            Self::Stat => "asking for its metadata",
            Self::Read => "reading it",
            Self::Lock => "locking it",
            Self::CreateTemporary => "creating a temporary file beside it",
            Self::Write => "writing the temporary file",
            Self::SyncFile => "fsync of the temporary file",
            Self::BeforeRename => "the check before the rename",
            Self::Rename => "renaming the new file to it",
            Self::Link => "linking it",
            Self::Remove => "removing it",
            Self::SyncDirectory => "fsync of its directory",
        })
    }
}

/// A file or directory could not be read. Nothing was changed; nothing is known of its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused: no permission, an I/O error, a name that is too long.
    #[error("{path} cannot be read, {step} failed; {advice}", path = path.display(), advice = advice(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What failed.
        step: Step,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else than was asked for, and was not followed, read or waited for.
    #[error("{path} is {found}, and is left alone; see who put it there, then remove it", path = path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: FileKind,
    },
}

impl ReadError {
    /// What the system said, where it was the system that refused.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::NotRegular { .. } => None,
        }
    }

    pub(super) fn into_io(self) -> io::Error {
        match self {
            Self::Io { source, .. } => source,
            Self::NotRegular { .. } => {
                io::Error::new(io::ErrorKind::InvalidInput, self.to_string())
            }
        }
    }
}

/// A file was not written, linked, renamed or removed, or may have been: the variants tell what is
/// known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Not created: something is there already. It is unchanged.
    #[error("{path} was not created, it exists; read it and decide again", path = path.display())]
    AlreadyExists {
        /// The target.
        path: PathBuf,
    },
    /// It may be done, and may be undone again by a power cut.
    #[error(
        "{path} may or may not have been changed, {step} failed; read it again, and see the system's log for the disk",
        path = path.display()
    )]
    InDoubt {
        /// The target.
        path: PathBuf,
        /// What failed.
        step: Step,
        /// What the system said.
        source: io::Error,
    },
    /// The target is unchanged, and no temporary file is left.
    #[error("{path} was not changed, {step} failed; {advice}", path = path.display(), advice = advice(source))]
    NotWritten {
        /// The target.
        path: PathBuf,
        /// What failed.
        step: Step,
        /// What the system, or the caller's own check, said.
        source: io::Error,
    },
}

/// A lock file could not be locked. No lock is held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The system refused.
    #[error("{path} cannot be locked, {step} failed; {advice}", path = path.display(), advice = advice(source))]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What failed.
        step: Step,
        /// What the system said.
        source: io::Error,
    },
    /// Something else than a regular file is at its path, and was not followed or waited for.
    #[error("the lock file {path} is {found}, and is left alone; see who put it there, then remove it", path = path.display())]
    NotRegular {
        /// The lock file.
        path: PathBuf,
        /// What it is.
        found: FileKind,
    },
    /// It was removed or replaced each time that it had been locked.
    #[error(
        "the lock file {path} was removed or replaced {tries} times while it was waited for; stop what removes it, it must stay",
        path = path.display()
    )]
    Unstable {
        /// The lock file.
        path: PathBuf,
        /// How often it was opened.
        tries: u32,
    },
}

impl LockError {
    pub(super) fn from_read(error: ReadError) -> Self {
        match error {
            ReadError::Io { path, step, source } => Self::Io { path, step, source },
            ReadError::NotRegular { path, found } => Self::NotRegular { path, found },
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create the directory, or mount what belongs there",
        io::ErrorKind::PermissionDenied => "let this process's user read and write there",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the file system",
        io::ErrorKind::ReadOnlyFilesystem => "mount the file system writable",
        io::ErrorKind::NotADirectory => "a directory on the way is something else: remove that",
        io::ErrorKind::InvalidFilename => "choose a shorter name",
        io::ErrorKind::InvalidInput => "choose another path",
        io::ErrorKind::Interrupted => "try again",
        _ => "see the cause, and the system's log for the disk",
    }
}
