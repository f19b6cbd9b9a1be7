//! What this binary does when one of its tests starts it as a child.

use crate::{
    place::{content, epoch, mark, new_instance},
    support::CHILD_PATH,
};
use snapshot_format::install::{DatabaseFile, InstallError, Permit, Settled};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

/// Paths that are never there: asking for them shows in a trace where the part begins and ends that
/// is looked at.
pub(crate) const BEGIN: &str = "/mark-begin";
pub(crate) const END: &str = "/mark-end";

/// How a child ended that was not killed, as its exit code.
pub(crate) mod ended {
    /// `install` or `settle` was successful.
    pub(crate) const WELL: i32 = 0;
    /// The database is as it was before.
    pub(crate) const AS_IT_WAS: i32 = 10;
    /// It has to be settled first.
    pub(crate) const TO_SETTLE: i32 = 11;
    /// It was in doubt; settled then, the old database is in place, or the new one.
    pub(crate) const SETTLED_OLD: i32 = 12;
    pub(crate) const SETTLED_NEW: i32 = 13;
}

pub(crate) fn be(mode: &str) -> ! {
    let directory = PathBuf::from(std::env::var_os(CHILD_PATH).unwrap());
    let code = match mode {
        "install" => install(&directory),
        "settle" => settle(&directory),
        other => panic!("no such child: {other}"),
    };
    std::process::exit(code)
}

fn asked_for(mark: &str) {
    assert!(std::fs::metadata(mark).is_err());
}

fn settle(directory: &Path) -> i32 {
    asked_for(BEGIN);
    let settled = new_instance(directory).settle();
    asked_for(END);
    if settled.is_ok() { ended::WELL } else { ended::TO_SETTLE }
}

fn install(directory: &Path) -> i32 {
    let Ok((database, _)) = new_instance(directory).settle() else { return ended::TO_SETTLE };
    asked_for(BEGIN);
    let code = swap(&database);
    asked_for(END);
    code
}

fn swap(database: &DatabaseFile) -> i32 {
    let Ok(mut incoming) = database.incoming() else { return ended::AS_IT_WAS };
    let (restored, migrated) = (content("new"), content("new"));
    let (restored, migrated) = (&restored[..5000], &migrated[5000..]);
    if incoming.write_all(restored).is_err() {
        return ended::AS_IT_WAS;
    }
    // The check changes it, as a migration does: what it wrote has to be synced as well.
    let checked = incoming.verify(|path| {
        if std::fs::read(path)? != restored {
            return Err(std::io::Error::other("torn"));
        }
        std::fs::OpenOptions::new().append(true).open(path)?.write_all(migrated)
    });
    let Ok((verified, ())) = checked else { return ended::AS_IT_WAS };
    match verified.install(Permit::Unfenced(epoch()), Some(mark())) {
        Ok(_) => ended::WELL,
        Err(error) if error.left_it_as_it_was() => ended::AS_IT_WAS,
        Err(InstallError::InDoubt { .. }) => match database.settle() {
            Ok(Settled::Finished { snapshot, .. }) => {
                assert_eq!(snapshot, Some(mark()));
                ended::SETTLED_NEW
            }
            Ok(_) => ended::SETTLED_OLD,
            Err(_) => ended::TO_SETTLE,
        },
        Err(_) => ended::TO_SETTLE,
    }
}
