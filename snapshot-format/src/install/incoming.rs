//! The database that is to come, before it is in place.

use super::{
    DatabaseFile, InstallError, Installed, Permit, VerifyError,
    files::{Files, Token},
    swap,
};
use crate::name::Mark;
use fencing::durable::{ReadError, Step, WriteError};
use std::{
    error::Error,
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// A temporary file beside the database, being written. Removed when dropped.
///
/// Write the snapshot to it (`impl Write`), or to [`file`](Self::file) by whatever means; then
/// [`verify`](Self::verify).
#[derive(Debug)]
pub struct Incoming {
    file: File,
    temporary: Temporary,
}

/// A name of ours with everything that was made beside it, removed when dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) database: DatabaseFile,
    pub(super) token: Token,
    pub(super) name: OsString,
    path: PathBuf,
    /// It became the database, or what became of it is not known.
    pub(super) given_away: bool,
}

impl Incoming {
    pub(super) fn create(database: DatabaseFile, token: Token) -> Result<Self, WriteError> {
        let files = database.files();
        let name = files.incoming(token);
        let path = files.path_of(&name);
        let file = files.directory.create_file(&name)?;
        Ok(Self { file, temporary: Temporary { database, token, name, path, given_away: false } })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.temporary.path
    }

    /// The open file, for whoever writes by other means than [`Write`](io::Write).
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file, has the application look at it, and syncs what that changed.
    ///
    /// `check` gets the path of the file, complete: it opens it as a database, sees whether it is one
    /// of the application's, brings it up to date (migrations), puts all of it into the one file and
    /// closes it. Nothing of it is installed if `check` fails; the file is removed.
    ///
    /// # Errors
    ///
    /// [`VerifyError`]; the database in place is untouched.
    pub fn verify<T, E>(
        self,
        check: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<(Verified, T), VerifyError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let Self { file, temporary } = self;
        let path = || temporary.path.clone();
        file.sync_all().map_err(|source| unsynced(path(), source))?;
        drop(file);
        let told = check(&temporary.path)
            .map_err(|source| VerifyError::Rejected { path: path(), source: source.into() })?;

        let files = temporary.database.files();
        if let Some((path, size)) = files.side_file(&temporary.name)? {
            return Err(VerifyError::SideFile { path, size });
        }
        // By its name: the check may have put another file there.
        let file = files.directory.open_file(&temporary.name)?;
        let file = file.ok_or_else(|| VerifyError::Gone { path: path() })?;
        file.sync_all().map_err(|source| unsynced(path(), source))?;
        match files.regular(&temporary.name)? {
            Some(entry) if entry.size > 0 => Ok((Verified(temporary), told)),
            Some(_) => Err(VerifyError::Empty { path: path() }),
            None => Err(VerifyError::Gone { path: path() }),
        }
    }
}

fn unsynced(path: PathBuf, source: io::Error) -> VerifyError {
    VerifyError::Write(WriteError::NotWritten { path, step: Step::SyncFile, source })
}

impl io::Write for Incoming {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A database that the application has looked at, on disk, ready to be swapped in. Removed when
/// dropped.
#[derive(Debug)]
#[must_use = "it is removed when it is dropped"]
pub struct Verified(pub(super) Temporary);

impl Verified {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Makes it the database. What was the database becomes a backup.
    ///
    /// **Close the database before**: see [the module](super). `permit` says by what right, and is
    /// looked at again when only the rename remains. `snapshot` is what is installed, if it is one:
    /// should a crash come, [`Settled`](super::Settled) tells it.
    ///
    /// # Errors
    ///
    /// [`InstallError::InDoubt`]: settle before anything opens the database. Every other error: the
    /// database is what it was before, under its one name, and may be opened again.
    pub fn install(
        self,
        permit: Permit,
        snapshot: Option<Mark>,
    ) -> Result<Installed, InstallError> {
        swap::install(self.0, &permit, snapshot)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.given_away
            && let Err(error) = self.remove(self.database.files())
        {
            // Swept when it is settled next.
            tracing::warn!(path = %self.path.display(), %error, "a temporary file remains");
        }
    }
}

impl Temporary {
    fn remove(&self, files: &Files) -> Result<(), WriteError> {
        for suffix in &files.side_files {
            let mut name = self.name.clone();
            name.push(suffix);
            files.directory.remove(&name)?;
        }
        files.directory.remove(&self.name).map(drop)
    }
}

impl From<ReadError> for VerifyError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
