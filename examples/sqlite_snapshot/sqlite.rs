//! What SQLite wants of a snapshot and of a swap.

use crate::Error;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// What this version of the service makes of the database that it opens.
const SCHEMA: u32 = 2;

/// Opens the database, which must be there: SQLite would put an empty one in its place.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    Ok(connection)
}

/// A new, empty one, for the first instance of a new cluster alone. As an earlier version made it.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    let connection = Connection::open(path)?;
    connection
        .execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT NOT NULL);")?;
    connection.pragma_update(None, "user_version", 1)?;
    close(connection)
}

/// Closes the database with all of it in the one file. No side file is left, unless another
/// connection is open: the swap refuses then.
pub(crate) fn close(connection: Connection) -> Result<(), Error> {
    let busy: u32 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        return Err("the write-ahead log is in use: close the other connections first".into());
    }
    connection.close().map_err(|(_, error)| error.into())
}

/// What a restored database is looked at for: whole, and of this service. Brings it up to date.
/// Returns its schema before and its orders.
pub(crate) fn verify(path: &Path) -> Result<(u32, u32), Error> {
    let connection = open(path)?;
    let whole: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if whole != "ok" {
        return Err(format!("the database is damaged: {whole}").into());
    }
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    migrate(&connection, found)?;
    let count = orders(&connection)?;
    close(connection)?;
    Ok((found, count))
}

/// Forward only: a database of a later version is not for this one.
pub(crate) fn migrate(connection: &Connection, found: u32) -> Result<(), Error> {
    match found {
        1 => connection.execute_batch(
            "BEGIN; ALTER TABLE orders ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
             PRAGMA user_version = 2; COMMIT;",
        )?,
        SCHEMA => {}
        other => return Err(format!("schema {other} is not this version's, {SCHEMA}").into()),
    }
    Ok(())
}

pub(crate) fn orders(connection: &Connection) -> Result<u32, Error> {
    Ok(connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?)
}

pub(crate) fn add(connection: &Connection, epoch: u64, count: u32) -> Result<(), Error> {
    let epoch = i64::try_from(epoch)?;
    for _ in 0..count {
        connection.execute("INSERT INTO orders (what, epoch) VALUES ('an order', ?1)", [epoch])?;
    }
    Ok(())
}

/// A copy as of one moment, while the database is in use: whole, in one file, closed.
pub(crate) fn copy(connection: &Connection, to: &Path) -> Result<(), Error> {
    let to = to.to_str().ok_or("the path of the copy is not UTF-8")?;
    connection.execute("VACUUM INTO ?1", [to])?;
    Ok(())
}
