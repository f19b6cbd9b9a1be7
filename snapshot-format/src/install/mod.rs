//! Replacing the one file of a database, so that a crash at any moment leaves the old one or the new
//! one, whole.
//!
//! ```text
//! orders.db                                     the database
//! orders.db.bak-20261012T095841.517Z-epoch7     what it replaced: when, under which epoch
//! orders.db.replace.json                        the journal of a swap that is under way
//! orders.db.replace.lock                        locked by the one process that may swap
//! .orders.db.incoming-0f1e2d3c4b5a6978          what is to become the database
//! ```
//!
//! The new database is written to a temporary file in the same directory, checked there by the
//! application's own code ([`Incoming::verify`]), and swapped in ([`Verified::install`]):
//!
//! | step | then a crash leaves |
//! | --- | --- |
//! | the new file is synced | the old database |
//! | the journal is written | the old database |
//! | the old file gets its backup name, by a hard link | the old database |
//! | *the last look: the fence, the lock, the side files* | the old database |
//! | the new file is renamed over the database | the new database, and the backup |
//! | backups beyond the newest three are removed | the new database, and the backup |
//! | the journal is removed | the new database, and the backup |
//!
//! Each step is followed by an `fsync` of the directory before the next one begins.
//! [`InstallOptions::settle`] is the only way to a [`DatabaseFile`], so that a swap which a crash cut
//! is finished (after the rename) or undone (before it) *before* anything opens the database.
//!
//! # What the application must do
//!
//! - **Settle first, on every start.** Between two steps the database and its backup are one file
//!   under two names. SQLite, for one, must never open such a file.
//! - **Close the database before [`install`](Verified::install)**, every connection of every process,
//!   with all of it in the one file: in SQLite `PRAGMA wal_checkpoint(TRUNCATE)`, then close. The side
//!   files (`-wal`, `-shm`, `-journal`) are gone then. An old write-ahead log beside a new database
//!   would be played into it, and what is in it is missing in the backup: while any side file is
//!   there, `install` refuses. Other databases have other side files:
//!   [`InstallOptions::side_files`].
//! - **Close what [`verify`](Incoming::verify) opened**, in the same way. A side file of the incoming
//!   database would not go along with the rename: it is refused as well.
//! - **Open the database without creating it** (in SQLite without `SQLITE_OPEN_CREATE`). A missing
//!   database is an error here, never an empty start: see [`Missing`].
//! - **Raise the high-water mark after the fact**: when `install` has returned, or when `settle` tells
//!   of a swap that it [finished](Settled::Finished).
//!
//! ```
//! use snapshot_format::{
//!     fencing::Epoch,
//!     install::{DatabaseFile, Permit, Settled},
//! };
//! use std::{fs, io::Write as _};
//!
//! # let scratch = tempfile::tempdir()?;
//! # let path = scratch.path().join("orders.db");
//! # fs::write(&path, "old")?;
//! let (database, settled) = DatabaseFile::options(&path).settle()?;          // on every start
//! assert_eq!(settled, Settled::Clean);
//!
//! let mut incoming = database.incoming()?;
//! incoming.write_all(b"new")?;                            // decrypt the snapshot into it
//! let (verified, ()) = incoming.verify(|path| {           // open it, look, migrate, close it
//!     let is_ours = fs::read(path)?.starts_with(b"new");
//!     is_ours.then_some(()).ok_or_else(|| std::io::Error::other("no database of ours"))
//! })?;
//! // Here the application closes its own database. In a takeover: `Permit::TakingOver(tenure.fence())`.
//! let installed = verified.install(Permit::Unfenced(Epoch::MIN), None)?;
//! assert_eq!(fs::read(&path)?, b"new");
//! assert_eq!(fs::read(installed.backup.unwrap())?, b"old");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! Nothing tells from outside whether a database is still open without side files: that is for the
//! application to know. The new file has mode 0600 and belongs to the process that wrote it. The file
//! system must have hard links, and keep a rename whole in a power cut, as every journalling one does.
//!
//! All of it blocks on the file system: on an async runtime use it on a thread that may block.

mod database;
mod error;
mod files;
mod incoming;
mod journal;
mod settle;
mod swap;

pub use database::{DatabaseFile, InstallOptions, Missing, SQLITE_SIDE_FILES};
pub use error::{InstallError, SettleError, VerifyError};
pub use files::Backup;
pub use incoming::{Incoming, Verified};
pub use settle::Settled;
pub use swap::{Installed, Permit};
