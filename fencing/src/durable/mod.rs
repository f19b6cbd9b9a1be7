//! Crash-safe files (feature `fs`): what is read is whole, what was reported as written is on disk.
//!
//! The local store, an instance's history, gates in files and the installation of snapshots share
//! this one primitive.
//!
//! - **Reading** ([`read_bounded`]) opens a regular file and nothing else, follows no symlink in the
//!   last component, never blocks on a FIFO, and never reads more than it was told. Only "no such
//!   file" is `None`; everything else that is wrong is an error, so that an unreadable file is never
//!   taken for an absent one.
//! - **Writing** ([`replace`], [`create_new`]) goes through a temporary file in the same directory:
//!   write, `fsync`, rename, `fsync` of the directory, and only then success. A reader sees the old
//!   content or the new one, never a mixture. An error says whether the target is certainly
//!   unchanged ([`WriteError::NotWritten`]) or not ([`WriteError::InDoubt`]).
//! - **Locking** ([`LockFile`]) is `flock` on a file that is never renamed or unlinked, with a look
//!   at the inode after locking: a lock on a file that is no longer at its path excludes nobody.
//!
//! - **Names** ([`Directory::link`], [`Directory::rename`], [`Directory::remove`]) change one at a time,
//!   each followed by an `fsync` of the directory, for what needs several steps in a certain order.
//!
//! The functions of this module take paths. [`Directory`] has the same operations relative to an
//! open directory, for callers that walk down a tree in which no symlink may be followed, or that
//! want something [looked at](Directory::replace) right before the rename.
//!
//! All of it blocks. On an async runtime call it from a thread that may block; an operation that
//! hangs in the kernel cannot be cancelled.
//!
//! ```
//! use fencing::durable::{self, Content};
//!
//! # let scratch = tempfile::tempdir().unwrap();
//! let path = scratch.path().join("state.json");
//! assert_eq!(durable::read_bounded(&path, 1024)?, None);
//! durable::create_new(&path, b"{}")?;
//! durable::replace(&path, b"{\"epoch\":7}")?;
//! assert_eq!(durable::read_bounded(&path, 1024)?, Some(Content::Whole(b"{\"epoch\":7}".to_vec())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modes and owners
//!
//! Files are created with mode 0600, directories with 0700, both less the umask. A replaced file has
//! the mode and owner of the process that replaced it: all processes that share a directory run as
//! one user.

#[cfg(not(unix))]
compile_error!(
    "the feature `fs` of `fencing` needs Unix: flock, O_NOFOLLOW and fsync of directories"
);

mod directory;
mod entries;
mod error;
mod lock;
mod read;
mod write;

pub use directory::Directory;
pub use entries::Entry;
pub use error::{FileKind, LockError, ReadError, Step, WriteError};
pub use lock::LockFile;
pub use read::{Content, Oversize};

use rustix::fs::{CWD, Mode, Stat};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const DIRECTORY_MODE: Mode = Mode::RWXU;

/// Which file it is, as long as it exists: two paths with one identity are one file.
///
/// An inode number is used again after its file is gone, so an identity means something only
/// beside an open handle, or beside a lock that was held all the while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileIdentity {
    /// The device that the file system is on.
    pub dev: u64,
    /// The inode on that device.
    pub ino: u64,
}

impl FileIdentity {
    #[allow(clippy::unnecessary_cast, reason = "narrower and signed on other platforms")]
    const fn of(stat: &Stat) -> Self {
        Self { dev: stat.st_dev as u64, ino: stat.st_ino as u64 }
    }
}

/// Reads a regular file of at most `limit` bytes; of a larger one, what tells its versions apart.
///
/// A symlink in the last component is refused; the directories before it are the caller's.
/// At most `limit` + 1 bytes are read. `None`: the file, or a directory on the way, does not exist.
///
/// # Errors
///
/// [`ReadError::NotRegular`] for a symlink, FIFO, directory, socket or device, without blocking and
/// without reading; [`ReadError::Io`] for everything else.
pub fn read_bounded(path: &Path, limit: usize) -> Result<Option<Content>, ReadError> {
    read::read_at(CWD, path.as_os_str(), path, limit)
}

/// Replaces the file, or creates it: afterwards it has exactly this content, also after a power cut.
///
/// A symlink at `path` is itself replaced; what it points to is not touched.
///
/// # Errors
///
/// [`WriteError::NotWritten`] with the target unchanged and no temporary file left,
/// [`WriteError::InDoubt`] if it may hold the new content, now or after a power cut.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    let (directory, name) = open_parent(path)?;
    directory.replace(name, content, || Ok(()))
}

/// Creates the file with this content, whole from the first moment that others see it.
///
/// # Errors
///
/// [`WriteError::AlreadyExists`] if anything is at `path`, be it a dangling symlink; otherwise as
/// [`replace`].
pub fn create_new(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    let (directory, name) = open_parent(path)?;
    directory.create_new(name, content, || Ok(()))
}

/// The id that the kernel gave this boot of the machine: another one means that every process of
/// the earlier one has ended.
///
/// `None` where the platform tells none (it is Linux that does), or it cannot be read.
#[must_use]
pub fn boot_id() -> Option<String> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let Ok(Some(Content::Whole(bytes))) = read_bounded(path, 64) else { return None };
    let text = String::from_utf8(bytes).ok()?;
    let id = text.trim_end();
    let is_uuid = id.len() == 36 && id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    is_uuid.then(|| id.to_owned())
}

fn open_parent(path: &Path) -> Result<(Directory, &OsStr), WriteError> {
    let (parent, name) = split(path).map_err(|source| WriteError::NotWritten {
        path: path.into(),
        step: Step::OpenDirectory,
        source,
    })?;
    let directory = Directory::open(&parent).map_err(|error| WriteError::NotWritten {
        path: path.into(),
        step: Step::OpenDirectory,
        source: error.into_io(),
    })?;
    Ok((directory, name))
}

/// The directory that `path` is in, and its name there.
fn split(path: &Path) -> std::io::Result<(PathBuf, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the path does not end in a file name",
        )
    })?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => Ok((parent.into(), name)),
        _ => Ok((".".into(), name)),
    }
}
