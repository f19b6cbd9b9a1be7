//! The files beside a database, by their names.

use super::SettleError;
use crate::name::SnapshotTime;
use fencing::{
    Clock, Epoch,
    durable::{Directory, Entry, FileKind, LockFile, ReadError, Step},
};
use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
};

/// One database, the names beside it, and what was chosen for it.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) directory: Directory,
    pub(super) database: OsString,
    pub(super) lock: LockFile,
    pub(super) side_files: Vec<OsString>,
    pub(super) backups_kept: NonZeroUsize,
    pub(super) may_be_missing: bool,
    pub(super) clock: Arc<dyn Clock>,
}

impl Files {
    pub(super) fn lock_name(database: &OsStr) -> OsString {
        with_suffix(database, ".replace.lock")
    }

    pub(super) fn journal(&self) -> OsString {
        with_suffix(&self.database, ".replace.json")
    }

    pub(super) fn incoming(&self, token: Token) -> OsString {
        with_suffix(&self.incoming_prefix(), &token.to_string())
    }

    pub(super) fn backup(&self, backup: BackupName) -> OsString {
        with_suffix(&self.database, &backup.to_string())
    }

    pub(super) fn path_of(&self, name: &OsStr) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The database or a file beside it: a regular file, or none.
    pub(super) fn regular(&self, name: &OsStr) -> Result<Option<Entry>, ReadError> {
        match self.directory.entry(name)? {
            Some(Entry { kind, .. }) if kind != FileKind::Regular => {
                Err(ReadError::NotRegular { path: self.path_of(name), found: kind })
            }
            found => Ok(found),
        }
    }

    /// The first side file of `of` that is there, and its size.
    pub(super) fn side_file(&self, of: &OsStr) -> Result<Option<(PathBuf, u64)>, ReadError> {
        for suffix in &self.side_files {
            let mut name = of.to_owned();
            name.push(suffix);
            if let Some(found) = self.directory.entry(&name)? {
                return Ok(Some((self.path_of(&name), found.size)));
            }
        }
        Ok(None)
    }

    /// The backups, newest first. Names of other forms are no backups of ours.
    pub(super) fn backups(&self) -> Result<Vec<BackupName>, ReadError> {
        let prefix = self.database.as_encoded_bytes();
        let mut found: Vec<_> = self
            .names()?
            .iter()
            .filter_map(|name| BackupName::parse(name.as_encoded_bytes().strip_prefix(prefix)?))
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// Removes what incoming databases of earlier processes left.
    pub(super) fn sweep_incoming(&self) -> Result<(), SettleError> {
        let prefix = self.incoming_prefix();
        let prefix = prefix.as_encoded_bytes();
        for name in self.names()? {
            let Some(rest) = name.as_encoded_bytes().strip_prefix(prefix) else { continue };
            // Whatever follows the token is a side file that the application's check made.
            if rest.get(..Token::LENGTH).and_then(Token::parse).is_some() {
                self.directory.remove(&name)?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<OsString>, ReadError> {
        self.directory.names().map_err(|source| ReadError::Io {
            path: self.directory.path().into(),
            step: Step::Read,
            source,
        })
    }

    fn incoming_prefix(&self) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.database);
        name.push(".incoming-");
        name
    }
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

/// What tells one incoming file from another: 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token(u64);

impl Token {
    pub(super) const LENGTH: usize = 16;

    pub(super) fn random() -> io::Result<Self> {
        getrandom::u64().map(Self).map_err(io::Error::other)
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != Self::LENGTH || !text.iter().all(is_hex) {
            return None;
        }
        u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok().map(Self)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What follows the database's name in that of a backup: `.bak-20261012T095841.517Z-epoch7`. What is
/// older is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BackupName {
    // The order of the fields is the order of backups.
    pub(super) at: SnapshotTime,
    pub(super) epoch: Epoch,
}

impl BackupName {
    fn parse(suffix: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(suffix).ok()?.strip_prefix(".bak-")?;
        let (time, epoch) = text.split_once("-epoch")?;
        let (date, time) = (time.get(..8)?, time.get(8..)?);
        let extended = format!(
            "{}-{}-{}{}:{}:{}",
            date.get(..4)?,
            date.get(4..6)?,
            date.get(6..)?,
            time.get(..3)?,
            time.get(3..5)?,
            time.get(5..)?
        );
        let name = Self { at: extended.parse().ok()?, epoch: Epoch::new(epoch.parse().ok()?)? };
        // One spelling: no sign, no leading zero.
        (name.to_string().as_bytes() == suffix).then_some(name)
    }
}

impl fmt::Display for BackupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.to_string().replace(['-', ':'], "");
        write!(f, ".bak-{at}-epoch{}", self.epoch)
    }
}

/// A database that was replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// When it was replaced, by this machine's wall clock.
    pub at: SnapshotTime,
    /// The epoch under which it was replaced.
    pub epoch: Epoch,
}

impl Backup {
    pub(super) fn of(files: &Files, name: BackupName) -> Self {
        let path = files.path_of(&files.backup(name));
        Self { path, at: name.at, epoch: name.epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_has_one_name() {
        let name = ".bak-20261012T095841.517Z-epoch7";
        let parsed = BackupName::parse(name.as_bytes()).unwrap();
        assert_eq!(parsed.to_string(), name);
        assert_eq!(parsed.at.to_string(), "2026-10-12T09:58:41.517Z");
        for other in [
            "",
            ".bak-",
            ".bak-20261012T095841.517Z-epoch",
            ".bak-20261012T095841.517Z-epoch0",
            ".bak-20261012T095841.517Z-epoch07",
            ".bak-20261012T095841.517Z-epoch+7",
            ".bak-20261012T095841.517Z-epoch18446744073709551616",
            ".bak-20261012T095841Z-epoch7",
            ".bak-20261312T095841.517Z-epoch7",
            ".bak-20261012T095860.517Z-epoch7",
            ".bak-20261012T095841.517Z-epoch7-wal",
            ".bak-2026101éT095841.517Z-epoch7",
            ".bak-20261012T09é841.517Z-epoch7",
            ".bak",
            "-wal",
        ] {
            assert_eq!(BackupName::parse(other.as_bytes()), None, "{other}");
        }
        assert_eq!(BackupName::parse(b"\xff.bak-"), None);
    }

    #[test]
    fn backups_are_older_by_time_then_by_epoch_as_a_number() {
        let name = |text: &str| BackupName::parse(text.as_bytes()).unwrap();
        let early = name(".bak-20261012T095841.517Z-epoch10");
        let late = name(".bak-20261012T095841.518Z-epoch9");
        assert!(early < late);
        assert!(name(".bak-20261012T095841.517Z-epoch9") < early);
    }
}
