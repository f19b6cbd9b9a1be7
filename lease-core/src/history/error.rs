//! What can go wrong, and what to do then.

use crate::json::Unreadable;
use fencing::durable::{LockError, ReadError, WriteError};
use std::path::PathBuf;

/// An instance directory cannot be used. Nothing in it was changed, unless it says otherwise.
///
/// ```
/// use lease_core::history::{InstanceDir, InstanceDirError};
///
/// # let scratch = tempfile::tempdir().unwrap();
/// # let path = scratch.path().join("instance");
/// let _held = InstanceDir::open(&path)?;
/// let error = InstanceDir::open(&path).unwrap_err();
/// assert!(matches!(error, InstanceDirError::Busy { .. }));
/// assert!(error.to_string().contains("stop that one, or give this instance a directory of its own"));
/// # Ok::<(), InstanceDirError>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceDirError {
    /// Another process has it open.
    #[error(
        "the instance directory {} is in use by another process; stop that one, or give this \
         instance a directory of its own",
        path.display()
    )]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The system gave no random bytes for the instance's id.
    #[error("generating an instance id: the system gave no random bytes; try again")]
    Random(#[from] getrandom::Error),
    /// The directory cannot be opened, or the history in it not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The history was written by a later version.
    #[error(
        "the history {} has format {format}, and this version reads format 1; run the version that \
         wrote it, or a later one",
        path.display()
    )]
    TooNew {
        /// The history.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// The history is damaged.
    #[error(
        "the history {} is {why}; it was left as it is. Restore the file from a copy; if there is \
         none, move it away: the instance then starts as a new one, without the epochs it held",
        path.display()
    )]
    Unreadable {
        /// The history.
        path: PathBuf,
        /// What is wrong with it.
        why: Unreadable,
    },
    /// The first history could not be written.
    #[error(transparent)]
    Write(WriteError),
}

/// A change of the history is not certainly on disk.
///
/// The manager then abandons the takeover that waited for it: no fence opens on what may be
/// forgotten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// Not written: it would be larger than [`MAX_HISTORY_BYTES`](super::MAX_HISTORY_BYTES).
    #[error(
        "the history {} would grow above 256 KiB and was not written; give some of the clusters \
         another instance directory",
        path.display()
    )]
    Full {
        /// The history.
        path: PathBuf,
    },
    /// Not written: the lock file is no longer in its place, so another process may run as this
    /// instance.
    #[error(
        "the lock file {} was removed or its directory moved while this instance ran, and the \
         history was not written; leave the directory alone and restart the instance",
        path.display()
    )]
    LockLost {
        /// The lock file.
        path: PathBuf,
    },
    /// The system refused; whether it was written is in the error.
    #[error(transparent)]
    Write(#[from] WriteError),
}
