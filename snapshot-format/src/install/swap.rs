//! The swap.

use super::{
    InstallError, SettleError,
    database::lock_in_place,
    files::{BackupName, Files},
    incoming::Temporary,
    journal::Journal,
    settle::{prune, settle, undo},
};
use crate::name::{Mark, SnapshotTime};
use fencing::{
    Epoch, Fence, FenceShut, ShutReason,
    durable::{Step, WriteError},
};
use std::{
    io::{self, ErrorKind},
    path::PathBuf,
};

/// By what right a database is replaced. Looked at first, and again when only the rename remains.
///
/// ```
/// use snapshot_format::{
///     fencing::{Epoch, FenceControl, SystemClock},
///     install::Permit,
/// };
/// use std::sync::Arc;
///
/// let control = FenceControl::new(Epoch::MIN, Arc::new(SystemClock::new()));
/// let fence = control.fence();                            // of a takeover that is not confirmed
/// Permit::TakingOver(fence.clone()).check()?;
/// assert!(Permit::Active(fence.clone()).check().is_err());
///
/// drop(control);                                          // the takeover is lost
/// assert!(Permit::TakingOver(fence).check().is_err());
/// # Ok::<(), snapshot_format::fencing::FenceShut>(())
/// ```
#[derive(Clone, Debug)]
pub enum Permit {
    /// An active instance: while its fence is open.
    Active(Fence),
    /// A takeover, whose fence is not open yet: as long as it is not shut for good.
    TakingOver(Fence),
    /// No lease guards this: a tool that a person runs. The epoch goes into the backup's name.
    Unfenced(Epoch),
}

impl Permit {
    /// Whether the swap may be made now.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if it may not.
    pub fn check(&self) -> Result<(), FenceShut> {
        match self {
            Self::Active(fence) => fence.check(),
            Self::TakingOver(fence) => match fence.check() {
                Err(shut) if shut.reason == ShutReason::NotOpen => Ok(()),
                checked => checked,
            },
            Self::Unfenced(_) => Ok(()),
        }
    }

    /// The epoch under which the swap is made.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        match self {
            Self::Active(fence) | Self::TakingOver(fence) => fence.epoch(),
            Self::Unfenced(epoch) => *epoch,
        }
    }
}

/// A database that is in place, on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Installed {
    /// Where what it replaced is; `None` if there was no database before.
    pub backup: Option<PathBuf>,
}

pub(super) fn install(
    mut incoming: Temporary,
    permit: &Permit,
    snapshot: Option<Mark>,
) -> Result<Installed, InstallError> {
    let database = incoming.database.clone();
    let _turn = database.turn();
    let files = database.files();
    // An earlier swap of this process may have ended in doubt.
    settle(files)?;
    permit.check()?;
    let replaced_at = look(files)?;
    let journal =
        Journal { incoming: incoming.token, epoch: permit.epoch(), replaced_at, snapshot };
    let swapped = swap(files, &journal, permit);
    incoming.given_away = swapped.is_ok();
    match swapped {
        Ok(()) => {}
        Err(Failed::AtOnce(error)) => return Err(InstallError::not_replaced(files, error)),
        Err(Failed::Before(why)) => {
            if let Err(source) = undo(files, &journal) {
                tracing::error!(%why, "the swap failed, and undoing it failed too");
                incoming.given_away = true;
                return Err(InstallError::in_doubt(files, source));
            }
            return Err(why);
        }
        Err(Failed::InDoubt(error)) => {
            incoming.given_away = true;
            return Err(InstallError::in_doubt(files, error.into()));
        }
    }
    // From here on it is installed, whatever else fails.
    prune(files, journal.backup());
    if let Err(error) = files.directory.remove(&files.journal()) {
        tracing::warn!(%error, "the journal of a finished swap remains; it is settled on the next start");
    }
    Ok(Installed { backup: journal.backup().map(|name| files.path_of(&files.backup(name))) })
}

/// What is there before anything is changed: the time for the backup's name, if there is a database.
fn look(files: &Files) -> Result<Option<SnapshotTime>, InstallError> {
    lock_in_place(files).map_err(|_| InstallError::LockLost { path: files.lock.path() })?;
    if let Some((path, size)) = files.side_file(&files.database)? {
        return Err(InstallError::SideFile { path, size });
    }
    let newest = files.backups()?.first().copied();
    if files.regular(&files.database)?.is_none() {
        if files.may_be_missing && newest.is_none() {
            return Ok(None);
        }
        return Err(InstallError::Missing { path: files.path_of(&files.database) });
    }
    // Above all others even if the clock went back: order and age of backups stay the same thing.
    let now = SnapshotTime::from_wall(files.clock.wall());
    Ok(Some(newest.map_or(now, |newest: BackupName| now.max(newest.at.next()))))
}

enum Failed {
    /// Nothing was done yet.
    AtOnce(WriteError),
    /// The database is what it was; what was done on the way to the rename has to be undone.
    Before(InstallError),
    InDoubt(WriteError),
}

/// The steps up to the rename, each on disk before the next.
fn swap(files: &Files, journal: &Journal, permit: &Permit) -> Result<(), Failed> {
    let not_replaced = |error| Failed::Before(InstallError::not_replaced(files, error));
    match journal.write(files) {
        Ok(()) => {}
        Err(error @ WriteError::InDoubt { .. }) => return Err(not_replaced(error)),
        Err(error) => return Err(Failed::AtOnce(error)),
    }
    if let Some(name) = journal.backup() {
        files.directory.link(&files.database, &files.backup(name)).map_err(not_replaced)?;
    }
    let mut veto = None;
    let from = files.incoming(journal.incoming);
    let renamed = files.directory.rename(&from, &files.database, || {
        last_look(files, permit).map_err(|why| {
            veto = Some(why);
            io::Error::other("vetoed")
        })
    });
    match (renamed, veto) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(why)) => Err(Failed::Before(why)),
        (Err(error @ WriteError::NotWritten { .. }), None) => Err(not_replaced(error)),
        (Err(error), None) => Err(Failed::InDoubt(error)),
    }
}

fn last_look(files: &Files, permit: &Permit) -> Result<(), InstallError> {
    lock_in_place(files).map_err(|_| InstallError::LockLost { path: files.lock.path() })?;
    // Whoever opened the database since then has begun to write beside it.
    if let Some((path, size)) = files.side_file(&files.database)? {
        return Err(InstallError::SideFile { path, size });
    }
    Ok(permit.check()?)
}

impl InstallError {
    fn not_replaced(files: &Files, source: WriteError) -> Self {
        let database = files.path_of(&files.database);
        match source {
            WriteError::NotWritten { step: Step::Link, source, .. }
                if matches!(
                    source.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::TooManyLinks | ErrorKind::Unsupported
                ) =>
            {
                Self::NoLink { database, source }
            }
            source => Self::NotReplaced { database, source },
        }
    }

    fn in_doubt(files: &Files, source: SettleError) -> Self {
        Self::InDoubt { database: files.path_of(&files.database), source }
    }
}
