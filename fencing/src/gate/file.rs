use super::Stale;
use crate::{
    durable::{Content, Directory, LockError, LockFile, ReadError, WriteError},
    token::Epoch,
};
use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A mark is `fencing-mark 1 <token>` and a line feed: what is cut short is told from it.
const HEAD: &str = "fencing-mark 1 ";
/// More than any mark has.
const MARK_BYTES_MAX: usize = 64;

/// A gate in a file: survives a crash at any step, and is shared by the processes of one machine.
///
/// The highest token stands in the file; `<file>.lock` beside it is the lock that admissions are
/// made under. An [admission](Admitted) holds that lock until it is dropped: write while it lives, and
/// no larger token can come in between.
///
/// ```
/// use fencing::{Epoch, FileGate, durable};
///
/// # let scratch = tempfile::tempdir()?;
/// # let (mark, report) = (scratch.path().join("report.mark"), scratch.path().join("report"));
/// let gate = FileGate::open(&mark)?;               // each process opens its own
/// let (old, new) = (Epoch::new(7).unwrap(), Epoch::new(8).unwrap());
///
/// let admitted = gate.admit(old)?;                 // the mark is on disk,
/// durable::replace(&report, b"of 7")?;             // and nobody else is admitted meanwhile
/// drop(admitted);
///
/// gate.raise(new)?;                                // a new holder, before it writes anything
/// let refused = gate.admit(old).unwrap_err();
/// assert_eq!(refused.stale().unwrap().highest, new);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it relies on
///
/// - Nobody removes, replaces or restores the mark or its lock file. A mark that vanishes or goes back
///   is refused by every handle that has seen the larger one, not by one that is opened afterwards.
/// - `flock` excludes all that write: one machine, a local file system ([`durable`](crate::durable)).
/// - The write ends before the admission is dropped, and its process dies with it: a child that goes
///   on writing is not stopped.
///
/// A process that is *frozen* within an admission keeps the lock, and so the next holder out. That is
/// the price of a resource that cannot refuse by itself: end the process, or use
/// [`try_raise`](Self::try_raise) and report it.
///
/// All of it blocks; on an async runtime call it from a thread that may block.
pub struct FileGate {
    directory: Directory,
    name: OsString,
    lock_name: OsString,
    known: Mutex<Known>,
}

/// What this handle knows of the file.
#[derive(Debug, Default)]
struct Known {
    /// The highest mark that it has seen there.
    highest: Option<Epoch>,
    /// The mark that it has written or synced itself: a process that was killed, or a disk that
    /// failed, between a rename and its fsync leaves a mark that a power cut takes back.
    durable: Option<Epoch>,
    /// A write of its own is not known to be on disk: fsync alone may say nothing any more.
    is_in_doubt: bool,
    /// What killed processes left behind was removed.
    is_swept: bool,
}

#[derive(Clone, Copy)]
enum Wait {
    No,
    UntilFree,
}

impl FileGate {
    /// Opens the gate whose mark is at `path`. A missing file has seen nothing and admits any token;
    /// its directory must exist.
    ///
    /// # Errors
    ///
    /// [`FileGateError`] if the directory cannot be opened, or what is at `path` is no mark.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileGateError> {
        let (directory, name) = crate::durable::open_parent_of(path.as_ref())?;
        let mut lock_name = OsString::from(&name);
        lock_name.push(".lock");
        let gate = Self { directory, name, lock_name, known: Mutex::default() };
        gate.read()?;
        Ok(gate)
    }

    /// Asks whether writes that carry `token` may pass, and remembers the token, on disk, if so.
    ///
    /// Waits while another admission is held, in any process.
    ///
    /// # Errors
    ///
    /// [`FileGateError::Stale`] if a larger token was seen. Any other says why it is not known, or
    /// why the mark is not on disk; nothing is admitted then either.
    pub fn admit(&self, token: Epoch) -> Result<Admitted, FileGateError> {
        self.pass(token, Wait::UntilFree)
    }

    /// The same without waiting.
    ///
    /// # Errors
    ///
    /// [`FileGateError::Busy`] while another admission is held; otherwise as [`admit`](Self::admit).
    pub fn try_admit(&self, token: Epoch) -> Result<Admitted, FileGateError> {
        self.pass(token, Wait::No)
    }

    /// Remembers `token` without a write, so that smaller ones are refused from now on, and every
    /// write that was admitted before has ended.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit). [`FileGateError::Stale`]: this holder is not the newest.
    pub fn raise(&self, token: Epoch) -> Result<(), FileGateError> {
        self.admit(token).map(drop)
    }

    /// The same without waiting.
    ///
    /// # Errors
    ///
    /// [`FileGateError::Busy`] while another admission is held; otherwise as [`admit`](Self::admit).
    pub fn try_raise(&self, token: Epoch) -> Result<(), FileGateError> {
        self.try_admit(token).map(drop)
    }

    /// The highest token seen so far, as the file has it now. It need not be on disk yet.
    ///
    /// # Errors
    ///
    /// [`FileGateError`] if it cannot be told.
    pub fn highest(&self) -> Result<Option<Epoch>, FileGateError> {
        self.read()
    }

    /// The path of the mark.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    fn pass(&self, token: Epoch, wait: Wait) -> Result<Admitted, FileGateError> {
        // A mark never goes back, so what was seen suffices for a refusal.
        Stale::check(token, self.known().highest)?;
        let lock = self.lock(wait)?;
        let mark = self.read()?;
        Stale::check(token, mark)?;
        self.make_durable(&lock, mark, token)?;
        Ok(Admitted { lock, token })
    }

    fn lock(&self, wait: Wait) -> Result<LockFile, FileGateError> {
        let lock = match wait {
            Wait::UntilFree => self.directory.lock(&self.lock_name)?,
            Wait::No => match self.directory.try_lock(&self.lock_name)? {
                Some(lock) => lock,
                None => return Err(FileGateError::Busy { path: self.path() }),
            },
        };
        if !lock.still_in_place() {
            return Err(FileGateError::Moved { path: self.path() });
        }
        let mut known = self.known();
        if !known.is_swept {
            // What cannot be removed is never looked at either.
            known.is_swept = self.directory.sweep_temporaries(&self.name).is_ok();
        }
        Ok(lock)
    }

    /// The mark as the file has it, never below what this handle has seen there.
    fn read(&self) -> Result<Option<Epoch>, FileGateError> {
        // Before the read: another thread of this handle may see a larger one meanwhile.
        let seen = self.known().highest;
        let content = self.directory.read_bounded(&self.name, MARK_BYTES_MAX)?;
        let found = match content {
            None => None,
            Some(Content::Whole(bytes)) => Some(parse(&bytes).map_err(|flaw| self.damaged(flaw))?),
            Some(Content::Oversize(_)) => return Err(self.damaged(MarkFlaw::TooLong)),
        };
        if found < seen {
            return Err(FileGateError::WentBack { path: self.path(), found, seen });
        }
        let mut known = self.known();
        known.highest = known.highest.max(found);
        Ok(found)
    }

    /// Puts `token` on disk, or makes sure that it is there.
    fn make_durable(
        &self,
        lock: &LockFile,
        mark: Option<Epoch>,
        token: Epoch,
    ) -> Result<(), FileGateError> {
        let mut known = self.known();
        if mark == Some(token) && !known.is_in_doubt {
            if known.durable != Some(token) {
                self.directory.sync().map_err(|source| {
                    known.is_in_doubt = true;
                    FileGateError::NotSynced { path: self.path(), source }
                })?;
            }
        } else {
            let still_locked = || {
                let moved = "the lock file or its directory was removed or replaced";
                if lock.still_in_place() { Ok(()) } else { Err(io::Error::other(moved)) }
            };
            let content = format!("{HEAD}{token}\n");
            let written = self.directory.replace(&self.name, content.as_bytes(), still_locked);
            known.is_in_doubt |= matches!(written, Err(WriteError::InDoubt { .. }));
            written?;
        }
        known.highest = known.highest.max(Some(token));
        known.durable = Some(token);
        known.is_in_doubt = false;
        Ok(())
    }

    fn damaged(&self, flaw: MarkFlaw) -> FileGateError {
        FileGateError::Damaged { path: self.path(), flaw }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FileGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileGate")
            .field("path", &self.path())
            .field("highest_seen", &self.known().highest)
            .finish_non_exhaustive()
    }
}

fn parse(bytes: &[u8]) -> Result<Epoch, MarkFlaw> {
    if bytes.is_empty() {
        return Err(MarkFlaw::Empty);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| MarkFlaw::NoMark)?;
    let whole = text.strip_suffix('\n').ok_or(MarkFlaw::Torn)?;
    let digits = whole.strip_prefix(HEAD).ok_or(MarkFlaw::NoMark)?;
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MarkFlaw::NoMark);
    }
    digits.parse().ok().and_then(Epoch::new).ok_or(MarkFlaw::NoMark)
}

/// An admission by a [`FileGate`]: writes under its token may be made while it lives.
///
/// It holds the gate's lock, so that no larger token is admitted, in any process, before the write
/// has ended.
#[derive(Debug)]
#[must_use = "the write is protected only while this lives"]
pub struct Admitted {
    lock: LockFile,
    token: Epoch,
}

impl Admitted {
    /// The token that was admitted.
    #[must_use]
    pub fn token(&self) -> Epoch {
        self.token
    }

    /// Whether the lock still excludes everybody: `false` if its file or directory was removed or
    /// replaced meanwhile. Ask right before what cannot be taken back.
    #[must_use]
    pub fn still_holds(&self) -> bool {
        self.lock.still_in_place()
    }
}

/// A [`FileGate`] admitted nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileGateError {
    /// Another admission is held, here or in another process, and waiting was not asked for.
    #[error("another writer is admitted to {path} now; wait for it, or see what it does", path = path.display())]
    Busy {
        /// The mark.
        path: PathBuf,
    },
    /// What is at the path is no mark.
    #[error(
        "{path} is no mark of a gate, {flaw}: nothing is admitted; put the mark back as `{HEAD}N` and a line feed, with N the largest token that was ever granted",
        path = path.display()
    )]
    Damaged {
        /// The mark.
        path: PathBuf,
        /// What is wrong with it.
        flaw: MarkFlaw,
    },
    /// The lock could not be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The lock file or its directory is no longer at its path: the lock excludes nobody.
    #[error("the lock of {path} or its directory was removed or replaced; stop what does that, then open the gate again", path = path.display())]
    Moved {
        /// The mark.
        path: PathBuf,
    },
    /// The larger token is not on disk, or not known to be.
    #[error(transparent)]
    NotDurable(#[from] WriteError),
    /// The mark of another process is not known to be on disk.
    #[error("the mark in {path} is not known to be on disk, fsync of its directory failed; see the system's log for the disk", path = path.display())]
    NotSynced {
        /// The mark.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be opened, or the mark not read; or it is no regular file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A larger token was seen.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The mark is smaller than what this handle has seen there, or gone: somebody put back an old
    /// one, or removed it.
    #[error(
        "the mark in {path} went back from {seen:?} to {found:?}: nothing is admitted; put back the larger one, and stop what changed it",
        path = path.display()
    )]
    WentBack {
        /// The mark.
        path: PathBuf,
        /// What is there now.
        found: Option<Epoch>,
        /// The highest that was there.
        seen: Option<Epoch>,
    },
}

impl FileGateError {
    /// The refusal of a stale token, if that is what it is.
    #[must_use]
    pub fn stale(&self) -> Option<Stale> {
        match self {
            Self::Stale(stale) => Some(*stale),
            _ => None,
        }
    }
}

/// What is wrong with a mark file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkFlaw {
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
    /// It is something else, or its token is none.
    #[error("it has other content than a mark")]
    NoMark,
    /// It is longer than any mark.
    #[error("it is too long for one")]
    TooLong,
    /// Its end is missing.
    #[error("it is cut short")]
    Torn,
}
