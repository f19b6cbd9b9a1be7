//! Finishing or undoing what a crash cut.

use super::{
    Backup, SettleError,
    files::{BackupName, Files},
    journal::Journal,
};
use crate::name::Mark;
use fencing::durable::Entry;

/// What was found to settle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Settled {
    /// No swap was under way.
    Clean,
    /// A swap was cut after the rename, and is finished: the new database is in place.
    Finished {
        /// Which snapshot it is, if the one who installed it said so: raise the high-water mark to
        /// it now, since whoever installed it may not have come to that.
        snapshot: Option<Mark>,
        /// What was replaced; `None` if there was no database before.
        backup: Option<Backup>,
    },
    /// A swap was cut before the rename, and is undone: the database is what it was before.
    Undone {
        /// Which snapshot was to be installed.
        snapshot: Option<Mark>,
    },
}

pub(super) fn settle(files: &Files) -> Result<Settled, SettleError> {
    // What is seen from here on may be the work of a process that was killed before it synced it.
    files
        .directory
        .sync()
        .map_err(|source| SettleError::Sync { path: files.directory.path().into(), source })?;
    let Some(journal) = Journal::read(files)? else { return Ok(Settled::Clean) };
    let settled = match outcome(files, &journal)? {
        Outcome::Renamed => finish(files, &journal)?,
        Outcome::NotRenamed => undo(files, &journal)?,
    };
    tracing::warn!(
        database = %files.path_of(&files.database).display(), ?settled,
        "a swap of the database that was cut has been settled"
    );
    Ok(settled)
}

enum Outcome {
    NotRenamed,
    Renamed,
}

/// Whether the rename took place. Afterwards the database is there, unless there never was one.
fn outcome(files: &Files, journal: &Journal) -> Result<Outcome, SettleError> {
    let incoming = files.regular(&files.incoming(journal.incoming))?;
    let database = files.regular(&files.database)?;
    let backup = match journal.backup() {
        Some(name) => files.regular(&files.backup(name))?.map(|entry| (name, entry)),
        None => None,
    };
    match (incoming, database, backup) {
        (Some(_), Some(_), _) => Ok(Outcome::NotRenamed),
        // Someone removed the database before the rename; its second name still has it.
        (Some(_), None, Some((name, _))) => {
            files.directory.link(&files.backup(name), &files.database)?;
            Ok(Outcome::NotRenamed)
        }
        // One file under two names: what was to replace it is gone without having done so.
        (None, Some(database), Some((_, backup))) if same(&database, &backup) => {
            Ok(Outcome::NotRenamed)
        }
        (None, Some(_), Some(_)) => Ok(Outcome::Renamed),
        (None, Some(_), None) if journal.replaced_at.is_none() => Ok(Outcome::Renamed),
        // It was undone before, all but the removal of the journal, which a power cut took back.
        (None, Some(_), None) => Ok(Outcome::NotRenamed),
        // There was no database, and there is none.
        (_, None, None) if journal.replaced_at.is_none() => Ok(Outcome::NotRenamed),
        // There was one, and somebody took it away. A backup in its place would be a rollback.
        (_, None, _) => Err(missing(files, false)),
    }
}

fn same(a: &Entry, b: &Entry) -> bool {
    a.identity == b.identity
}

/// Leaves the database under one name, then forgets the swap. Every step may be done already.
pub(super) fn undo(files: &Files, journal: &Journal) -> Result<Settled, SettleError> {
    if let Some(name) = journal.backup() {
        let backup = files.backup(name);
        let both = (files.regular(&files.database)?, files.regular(&backup)?);
        // Another file under that name is the last copy of something.
        if let (Some(database), Some(entry)) = both
            && same(&database, &entry)
        {
            files.directory.remove(&backup)?;
        }
    }
    files.directory.remove(&files.incoming(journal.incoming))?;
    files.directory.remove(&files.journal())?;
    Ok(Settled::Undone { snapshot: journal.snapshot })
}

fn finish(files: &Files, journal: &Journal) -> Result<Settled, SettleError> {
    let backup = journal.backup();
    prune(files, backup);
    files.directory.remove(&files.journal())?;
    let backup = backup.map(|name| Backup::of(files, name));
    Ok(Settled::Finished { snapshot: journal.snapshot, backup })
}

/// Removes all backups but the newest, and never `made`. What cannot be removed is tried again after
/// the next swap.
pub(super) fn prune(files: &Files, made: Option<BackupName>) {
    let told = |error: &dyn std::fmt::Display| {
        tracing::warn!(
            directory = %files.directory.path().display(), %error,
            "old backups of the database remain"
        );
    };
    let names = match files.backups() {
        Ok(names) => names,
        Err(error) => return told(&error),
    };
    for name in names.into_iter().skip(files.backups_kept.get()) {
        if Some(name) == made {
            continue;
        }
        if let Err(error) = files.directory.remove(&files.backup(name)) {
            return told(&error);
        }
    }
}

/// Removes what earlier processes left that no journal names. They are of no use and do no harm.
pub(super) fn tidy(files: &Files) {
    if let Err(error) = files.directory.sweep_temporaries(&files.journal()) {
        tracing::warn!(%error, "temporary files of the journal remain");
    }
    if let Err(error) = files.sweep_incoming() {
        tracing::warn!(%error, "incoming databases of earlier processes remain");
    }
}

/// No database, or nothing in it, is an error, unless it is accepted or what a journal says was there.
pub(super) fn check_presence(files: &Files, settled: &Settled) -> Result<(), SettleError> {
    let found = files.regular(&files.database)?;
    if found.is_some_and(|entry| entry.size > 0) {
        return Ok(());
    }
    let is_empty = found.is_some();
    let explained = matches!(settled, Settled::Undone { .. }) && !is_empty;
    if (files.may_be_missing || explained) && files.backups()?.is_empty() {
        return Ok(());
    }
    Err(missing(files, is_empty))
}

fn missing(files: &Files, is_empty: bool) -> SettleError {
    let newest = files.backups().ok().and_then(|names| names.first().copied());
    SettleError::Missing {
        path: files.path_of(&files.database),
        is_empty,
        newest_backup: newest.map(|name| files.path_of(&files.backup(name))),
    }
}
