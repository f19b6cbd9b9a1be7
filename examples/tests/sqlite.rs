//! The snapshots of a SQLite database: the example as a program, and what SQLite itself makes of a
//! swap.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod program;

use fencing::Epoch;
use program::example;
use rusqlite::Connection;
use snapshot_format::install::{DatabaseFile, InstallError, Permit};
use std::{fs, io, path::Path};

fn rows(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))
}

/// A database in WAL mode, of as many rows, all of it in the one file and closed.
fn database(path: &Path, count: u32) {
    let connection = open(path);
    connection.execute_batch("CREATE TABLE orders (what TEXT)").unwrap();
    insert(&connection, count);
    connection.close().unwrap();
    assert!(!beside(path, "-wal").exists(), "the last connection checkpoints");
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection
}

fn insert(connection: &Connection, count: u32) {
    for _ in 0..count {
        connection.execute("INSERT INTO orders VALUES (hex(randomblob(400)))", []).unwrap();
    }
}

fn beside(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn install(file: &DatabaseFile, from: &Path) -> Result<(), InstallError> {
    let mut incoming = file.incoming().unwrap();
    io::copy(&mut fs::File::open(from).unwrap(), &mut incoming).unwrap();
    let (verified, count) = incoming
        .verify(|path| {
            let connection = Connection::open(path)?;
            let count = rows(&connection)?;
            connection.close().map_err(|(_, error)| error)?;
            Ok::<_, rusqlite::Error>(count)
        })
        .unwrap();
    assert_eq!(count, 50);
    verified.install(Permit::Unfenced(Epoch::MIN), None).map(drop)
}

#[test]
fn the_example_tells_its_story() {
    let scratch = tempfile::tempdir().unwrap();
    let output = example("sqlite_snapshot").env("TMPDIR", scratch.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = printed.lines();
    for expected in [
        "a         starts empty, by the rule FirstActivation",
        "a         gives the lease back: released",
        "by the rule Newest",
        "b         has verified it: 5 orders, schema 2",
        "b         is active under epoch 2 with 5 orders",
        "somebody  deletes",
        "a         refuses: snapshot_behind_lease",
        "by the rule Forced",
        "a         has installed it; what was there is orders.db.bak-",
        "with 5 orders",
        "a has 5 orders; the one that b had added is in b's own database alone",
    ] {
        // Each somewhere behind the one before.
        assert!(lines.any(|line| line.contains(expected)), "no line with {expected}: {printed}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn an_open_database_is_not_replaced_and_a_closed_one_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, new) = (scratch.path().join("orders.db"), scratch.path().join("new.db"));
    database(&path, 3);
    database(&new, 50);
    let (file, _) = DatabaseFile::options(&path).settle().unwrap();

    let connection = open(&path);
    insert(&connection, 4);
    let error = install(&file, &new).unwrap_err();
    assert!(matches!(error, InstallError::SideFile { .. }), "{error}");
    // A checkpoint alone is not enough: the connection is still there, and could write again.
    let busy: u32 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    let error = install(&file, &new).unwrap_err();
    assert!(matches!(error, InstallError::SideFile { size: 0, .. }), "{error}");
    assert_eq!(rows(&connection).unwrap(), 7, "it is what it was");

    connection.close().unwrap();
    install(&file, &new).unwrap();
    assert_eq!(rows(&open(&path)).unwrap(), 50);
    let backup = file.backups().unwrap().remove(0).path;
    assert_eq!(rows(&Connection::open(backup).unwrap()).unwrap(), 7, "all of it is in the backup");
}

/// Why: what SQLite makes of a log of another database beside a new one.
#[test]
fn an_old_log_beside_a_new_database_is_played_into_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, new) = (scratch.path().join("orders.db"), scratch.path().join("new.db"));
    database(&path, 3);
    database(&new, 50);
    let log = {
        let connection = open(&path);
        insert(&connection, 4);
        fs::read(beside(&path, "-wal")).unwrap()
    };
    fs::rename(&new, &path).unwrap();
    assert_eq!(rows(&Connection::open(&path).unwrap()).unwrap(), 50);
    fs::write(beside(&path, "-wal"), log).unwrap();
    let found = rows(&Connection::open(&path).unwrap());
    assert_ne!(found.ok(), Some(50), "SQLite would be safe by itself, and the refusal needless");
}
