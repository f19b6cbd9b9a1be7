//! A directory with a database in it, and what may be seen of it from outside.

use snapshot_format::{
    fencing::{Epoch, Reading, WallTime, testing::ManualClock},
    install::{DatabaseFile, Incoming, InstallOptions, Missing, Verified},
    name::Mark,
};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

pub(crate) const DATABASE: &str = "app.db";
pub(crate) const EPOCH: u64 = 7;
/// 2026-10-12T09:58:41Z.
const NOW: u64 = 1_791_799_121;

/// A database that is told from a piece of it, and from every other.
pub(crate) fn content(of: &str) -> Vec<u8> {
    format!("{of}-").repeat(2000).into_bytes()
}

pub(crate) struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    /// Without a database.
    pub(crate) fn empty() -> Self {
        Self { scratch: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn with_database() -> Self {
        let place = Self::empty();
        place.write(DATABASE, &content("old"));
        place
    }

    /// With as many backups as are kept, so that one more makes one too many.
    pub(crate) fn with_backups() -> Self {
        let place = Self::with_database();
        for number in 1..=3 {
            place.write(&backup_name(number), &content(&format!("older{number}")));
        }
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.file(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.file(name)).ok()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = crate::support::names(self.path());
        names.retain(|name| !name.ends_with(".replace.lock"));
        names
    }

    pub(crate) fn options(&self) -> InstallOptions {
        options(self.path())
    }

    pub(crate) fn settled(&self) -> DatabaseFile {
        self.options().settle().unwrap().0
    }
}

pub(crate) fn options(directory: &Path) -> InstallOptions {
    DatabaseFile::options(directory.join(DATABASE)).clock(clock())
}

/// It shows [`NOW`].
pub(crate) fn clock() -> ManualClock {
    let wall = WallTime::from_unix_seconds(NOW);
    ManualClock::starting_at(Reading { wall, ..Reading::default() })
}

/// For a place that may never have had a database.
pub(crate) fn new_instance(directory: &Path) -> InstallOptions {
    options(directory).missing(Missing::Accept)
}

/// The backup that was made in the year 200`number` under epoch `number`.
pub(crate) fn backup_name(number: u64) -> String {
    format!("{DATABASE}.bak-200{number}0101T000000.000Z-epoch{number}")
}

pub(crate) fn made_backup() -> String {
    format!("{DATABASE}.bak-20261012T095841.000Z-epoch{EPOCH}")
}

pub(crate) fn epoch() -> Epoch {
    Epoch::new(EPOCH).unwrap()
}

/// What is installed, as a mark.
pub(crate) fn mark() -> Mark {
    Mark { epoch: Epoch::new(6).unwrap(), at: "2026-10-12T09:51:07.002Z".parse().unwrap() }
}

pub(crate) fn incoming(database: &DatabaseFile, content: &[u8]) -> Incoming {
    let mut incoming = database.incoming().unwrap();
    incoming.write_all(content).unwrap();
    incoming
}

pub(crate) fn verified(database: &DatabaseFile, content: &[u8]) -> Verified {
    incoming(database, content).verify(|_| Ok::<_, std::io::Error>(())).unwrap().0
}

/// What a place is after a crash and `settle`: panics unless the database is the old or the new one,
/// whole, under one name, with its backups, and nothing else is left.
///
/// `true`: the new one.
pub(crate) fn settled_state(directory: &Path, before: &Before) -> bool {
    let read = |name: &str| fs::read(directory.join(name)).ok();
    let mut names = crate::support::names(directory);
    names.retain(|name| !name.ends_with(".replace.lock"));
    let is_new = match read(DATABASE) {
        Some(found) if found == content("new") => true,
        Some(found) => {
            assert!(before.had_database && found == content("old"), "torn: {names:?}");
            false
        }
        None => {
            assert!(!before.had_database, "gone: {names:?}");
            false
        }
    };
    if read(DATABASE).is_some() {
        let links = fs::metadata(directory.join(DATABASE)).unwrap().nlink();
        assert_eq!(links, 1, "two names of one file: {names:?}");
    }
    let mut expected: Vec<String> = before.backups.iter().copied().map(backup_name).collect();
    if is_new && before.had_database {
        assert_eq!(read(&made_backup()), Some(content("old")), "no backup: {names:?}");
        expected.push(made_backup());
        // The oldest may be gone, since it is one too many, and need not be.
        if expected.len() > 3 && !names.contains(&expected[0]) {
            expected.remove(0);
        }
    }
    for number in &before.backups {
        if let Some(found) = read(&backup_name(*number)) {
            assert_eq!(found, content(&format!("older{number}")));
        }
    }
    if read(DATABASE).is_some() {
        expected.insert(0, DATABASE.into());
    }
    assert_eq!(names, expected);
    is_new
}

/// What was there before a swap.
pub(crate) struct Before {
    pub(crate) had_database: bool,
    pub(crate) backups: Vec<u64>,
}

/// A place that a swap can begin in.
pub(crate) struct Beginning {
    pub(crate) what: &'static str,
    /// Makes one anew.
    pub(crate) make: fn() -> Place,
    pub(crate) before: Before,
}

impl Beginning {
    pub(crate) fn with_database() -> Self {
        Self {
            what: "a database and three backups",
            make: Place::with_backups,
            before: Before { had_database: true, backups: vec![1, 2, 3] },
        }
    }

    pub(crate) fn of_a_new_instance() -> Self {
        Self {
            what: "no database",
            make: Place::empty,
            before: Before { had_database: false, backups: vec![] },
        }
    }

    pub(crate) fn both() -> [Self; 2] {
        [Self::with_database(), Self::of_a_new_instance()]
    }
}
