//! What can go wrong, and what to do then.

use fencing::{
    FenceShut,
    durable::{LockError, ReadError, WriteError},
};
use lease_core::json::Unreadable;
use std::{error::Error, io, path::PathBuf};

/// A database cannot be settled. Do not open it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// Another process holds its place.
    #[error(
        "the place of the database {} is held by another process; stop that one, or give this \
         instance a directory of its own",
        path.display()
    )]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The journal is damaged, and what it says of a swap cannot be told.
    #[error(
        "the journal {} is {why}; nothing was changed. See which of the files beside it are whole: \
         the database, its newest backup and a file whose name has `.incoming-`; put the one that is \
         to be the database in its place, then remove the journal",
        path.display()
    )]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        why: Unreadable,
    },
    /// The place cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no database, or nothing in it, and nothing explains that.
    #[error(
        "the database {} {}; an empty one in its place would lose what it held. Mount what belongs \
         there, or put it back{}",
        path.display(),
        if *is_empty { "is an empty file" } else { "is missing" },
        newest_backup.as_ref().map_or(String::new(), |backup| {
            format!(" (the newest backup, of an older state, is {})", backup.display())
        })
    )]
    Missing {
        /// The database.
        path: PathBuf,
        /// There is a file without a byte in it.
        is_empty: bool,
        /// The newest backup, if there are any.
        newest_backup: Option<PathBuf>,
    },
    /// The path names no file.
    #[error("{path:?} names no file; give the path of the database itself")]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// Something cannot be read, or is no regular file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The directory cannot be synced.
    #[error(
        "the directory {} cannot be synced, so that nothing in it is certain to stay; see the \
         system's log for the disk",
        path.display()
    )]
    Sync {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A later version wrote the journal.
    #[error(
        "the journal {} has format {format}, and this version reads format 1; run the version that \
         wrote it, or a later one",
        path.display()
    )]
    TooNew {
        /// The journal.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// A step could not be made. The next [`settle`](super::InstallOptions::settle) goes on from here.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// An incoming database is not to be installed. The one in place is untouched, the incoming one is
/// removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Nothing was written to it.
    #[error("the incoming database {} is empty; restore a whole snapshot into it", path.display())]
    Empty {
        /// The incoming file.
        path: PathBuf,
    },
    /// The application's check took it away.
    #[error(
        "the incoming database {} is gone after it was checked; leave it where it is",
        path.display()
    )]
    Gone {
        /// The incoming file.
        path: PathBuf,
    },
    /// It cannot be read any more.
    #[error(transparent)]
    Read(ReadError),
    /// The application's check rejected it.
    #[error("the incoming database {} was rejected; see the cause", path.display())]
    Rejected {
        /// The incoming file.
        path: PathBuf,
        /// What the check said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The application's check left a side file, in which a part of the database may be.
    #[error(
        "the check of the incoming database left {} ({size} bytes), which would not go along with \
         it; put everything into the one file (in SQLite: `PRAGMA wal_checkpoint(TRUNCATE)`), and \
         close every connection to it",
        path.display()
    )]
    SideFile {
        /// The side file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// It cannot be put on disk.
    #[error(transparent)]
    Write(WriteError),
}

/// A database was not replaced, or may have been.
///
/// After every variant but [`InDoubt`](Self::InDoubt) and [`Unsettled`](Self::Unsettled) the database
/// is what it was before, and may be opened again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The tenure may not act (any more).
    #[error("the database was not replaced: {0}")]
    FenceShut(#[from] FenceShut),
    /// It may be the old database or the new one, and may have two names.
    #[error(
        "the database {} may or may not have been replaced; settle it before anything opens it",
        database.display()
    )]
    InDoubt {
        /// The database.
        database: PathBuf,
        /// What failed last.
        source: SettleError,
    },
    /// The lock file is no longer in its place, so another process may be at the same.
    #[error(
        "the database was not replaced: the lock file {} was removed or its directory moved; leave \
         the directory alone and restart",
        path.display()
    )]
    LockLost {
        /// The lock file.
        path: PathBuf,
    },
    /// The database that is to be replaced is not there.
    #[error(
        "the database {} is missing, so nothing was put in its place; see who took it away, and put \
         it back",
        path.display()
    )]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// The old database cannot get a second name.
    #[error(
        "the database {} was not replaced: it cannot be linked to its backup name; use a file system \
         that has hard links, and files of this process's own user",
        database.display()
    )]
    NoLink {
        /// The database.
        database: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A step failed, and what was done before it is undone.
    #[error("the database {} was not replaced; see the cause", database.display())]
    NotReplaced {
        /// The database.
        database: PathBuf,
        /// What failed.
        source: WriteError,
    },
    /// Something cannot be read, or is no regular file.
    #[error("the database was not replaced: {0}")]
    Read(#[from] ReadError),
    /// The database has a side file: it is open, or was not closed in good order.
    #[error(
        "the database was not replaced: {} is there ({size} bytes). Put everything into the one file \
         (in SQLite: open it, `PRAGMA wal_checkpoint(TRUNCATE)`), and close every connection to it, \
         of every process",
        path.display()
    )]
    SideFile {
        /// The side file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// An earlier swap ended in doubt and cannot be settled: do not open the database.
    #[error("the database was not replaced: an earlier swap cannot be settled; see the cause")]
    Unsettled(#[from] SettleError),
}

impl InstallError {
    /// Whether the database is certainly what it was before, and may be opened again.
    #[must_use]
    pub fn left_it_as_it_was(&self) -> bool {
        !matches!(self, Self::InDoubt { .. } | Self::Unsettled(_))
    }
}
