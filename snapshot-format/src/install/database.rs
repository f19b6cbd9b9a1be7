//! The database, once whatever a crash cut is settled.

use super::{
    Backup, Incoming, SettleError, Settled,
    files::{Files, Token},
    settle,
};
use fencing::{
    Clock, SystemClock,
    durable::{Directory, WriteError},
};
use std::{
    ffi::OsString,
    io,
    num::NonZeroUsize,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The files that SQLite keeps beside a database: what is in them belongs to it.
pub const SQLITE_SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];
const BACKUPS_KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// Whether there may be no database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Missing {
    /// A missing database, or an empty file in its place, is an error: most often a volume is not
    /// mounted, or somebody moved it away, and an instance that started empty would lose all.
    #[default]
    Error,
    /// There may be none yet: this instance never had one. Say so only while its history knows
    /// neither a snapshot that it wrote nor one that it restored. (It is an error all the same while
    /// there are backups.)
    Accept,
}

/// How to settle and hold a database; made by [`DatabaseFile::options`].
///
/// ```
/// use snapshot_format::install::{DatabaseFile, Missing, Settled};
///
/// # let scratch = tempfile::tempdir()?;
/// # let path = scratch.path().join("orders.db");
/// let error = DatabaseFile::options(&path).settle().unwrap_err();
/// assert!(error.to_string().contains("is missing"));
///
/// let (database, settled) = DatabaseFile::options(&path)
///     .missing(Missing::Accept)                          // a new instance
///     .side_files(["-wal", "-shm", "-journal"])          // the default: SQLite's
///     .settle()?;
/// assert_eq!(settled, Settled::Clean);
/// assert!(!database.exists()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is settled before `settle`"]
pub struct InstallOptions {
    path: PathBuf,
    missing: Missing,
    side_files: Vec<OsString>,
    backups_kept: NonZeroUsize,
    clock: Arc<dyn Clock>,
}

impl InstallOptions {
    /// Whether there may be no database. Default: [`Missing::Error`].
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// What is appended to the database's name in those of its side files. Default:
    /// [`SQLITE_SIDE_FILES`].
    pub fn side_files<S: Into<OsString>>(mut self, suffixes: impl IntoIterator<Item = S>) -> Self {
        self.side_files = suffixes.into_iter().map(Into::into).collect();
        self
    }

    /// How many backups are kept, the newest. Default: 3.
    pub fn backups_kept(mut self, count: NonZeroUsize) -> Self {
        self.backups_kept = count;
        self
    }

    /// Where the time in the names of backups comes from. Default: the system's clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Locks the database's place, and settles what a crash left there: a swap that was cut before
    /// the rename is undone, one that was cut after it is finished.
    ///
    /// Call it on every start, before anything opens the database. Blocks for a few file operations.
    ///
    /// # Errors
    ///
    /// [`SettleError`] says what to do about it. Whatever it is: do not open the database.
    pub fn settle(self) -> Result<(DatabaseFile, Settled), SettleError> {
        // A relative path must not change its meaning when the process changes its directory.
        let path = std::path::absolute(&self.path)
            .map_err(|_| SettleError::NoName { path: self.path.clone() })?;
        let (Some(parent), Some(database)) = (path.parent(), path.file_name()) else {
            return Err(SettleError::NoName { path });
        };
        let directory = Directory::open(parent)?;
        let lock = directory
            .try_lock(&Files::lock_name(database))?
            .ok_or_else(|| SettleError::Busy { path: path.clone() })?;
        let files = Files {
            database: database.into(),
            directory,
            lock,
            side_files: self.side_files,
            backups_kept: self.backups_kept,
            may_be_missing: self.missing == Missing::Accept,
            clock: self.clock,
        };
        let settled = settle::settle(&files)?;
        settle::tidy(&files);
        settle::check_presence(&files, &settled)?;
        Ok((DatabaseFile(Arc::new(Inner { files, turn: Mutex::new(()) })), settled))
    }
}

/// The place of one database: settled, and locked against other processes for as long as this value
/// (or a clone, or an [`Incoming`] of it) lives. See the [module](super).
#[derive(Clone, Debug)]
pub struct DatabaseFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Files,
    /// One swap at a time.
    turn: Mutex<()>,
}

impl DatabaseFile {
    /// The options for the database at `path`. It may be a relative path; nothing in its last
    /// component is followed: a symlink there is refused.
    pub fn options(path: impl Into<PathBuf>) -> InstallOptions {
        InstallOptions {
            path: path.into(),
            missing: Missing::default(),
            side_files: SQLITE_SIDE_FILES.map(Into::into).into(),
            backups_kept: BACKUPS_KEPT,
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// Where the database is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.files().path_of(&self.files().database)
    }

    /// Whether there is a database.
    ///
    /// # Errors
    ///
    /// [`SettleError::Read`] if it cannot be told, or if it is no regular file.
    pub fn exists(&self) -> Result<bool, SettleError> {
        Ok(self.files().regular(&self.files().database)?.is_some())
    }

    /// What was replaced and is kept, newest first.
    ///
    /// # Errors
    ///
    /// [`SettleError::Read`] if the directory cannot be read.
    pub fn backups(&self) -> Result<Vec<Backup>, SettleError> {
        let files = self.files();
        Ok(files.backups()?.into_iter().map(|name| Backup::of(files, name)).collect())
    }

    /// A new, empty file in the same directory for the database that is to come.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotWritten`] if it cannot be created.
    pub fn incoming(&self) -> Result<Incoming, WriteError> {
        let token = Token::random().map_err(|source| WriteError::NotWritten {
            path: self.path(),
            step: fencing::durable::Step::CreateTemporary,
            source,
        })?;
        Incoming::create(self.clone(), token)
    }

    /// Settles once more, after [`InstallError::InDoubt`](super::InstallError::InDoubt): before
    /// anything opens the database again.
    ///
    /// # Errors
    ///
    /// As [`InstallOptions::settle`].
    pub fn settle(&self) -> Result<Settled, SettleError> {
        let _turn = self.turn();
        let settled = settle::settle(self.files())?;
        settle::check_presence(self.files(), &settled)?;
        Ok(settled)
    }

    pub(super) fn files(&self) -> &Files {
        &self.0.files
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        // Whoever panicked left the files as a crash would, which the next one settles.
        self.0.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the lock still excludes others, as an I/O error for a veto.
pub(super) fn lock_in_place(files: &Files) -> io::Result<()> {
    let lost = || io::Error::other("the lock file was removed or its directory moved");
    files.lock.still_in_place().then_some(()).ok_or_else(lost)
}
