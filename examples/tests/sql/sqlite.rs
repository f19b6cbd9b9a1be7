//! SQLite, in a file that several connections share.

use crate::table::{Connection, Server, statement};
use fencing::testing::gates::Trouble;
use std::{sync::Arc, time::Duration};

struct Sqlite(rusqlite::Connection);

/// A database in a scratch directory that lives as long as the tests do.
pub(crate) fn server() -> Server {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("reports.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(statement("schema")).unwrap();
    let audit = "CREATE TABLE audit (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, epoch BIGINT);
        CREATE TRIGGER inserted AFTER INSERT ON report
            BEGIN INSERT INTO audit (id, epoch) VALUES (new.id, new.epoch); END;
        CREATE TRIGGER updated AFTER UPDATE ON report
            BEGIN INSERT INTO audit (id, epoch) VALUES (new.id, new.epoch); END;";
    connection.execute_batch(audit).unwrap();
    Arc::new(move || {
        let connection = rusqlite::Connection::open(scratch.path().join("reports.sqlite")).unwrap();
        // One writer at a time; the others wait.
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        Box::new(Sqlite(connection))
    })
}

impl Connection for Sqlite {
    fn change(
        &mut self,
        sql: &str,
        id: &str,
        epoch: i64,
        body: Option<&str>,
    ) -> Result<u64, Trouble> {
        let mut statement = self.0.prepare(sql)?;
        let changed = match statement.parameter_count() {
            2 => statement.execute(rusqlite::params![id, epoch])?,
            _ => statement.execute(rusqlite::params![id, epoch, body])?,
        };
        Ok(changed as u64)
    }

    fn row(&mut self, id: &str) -> Result<Option<(i64, Option<String>)>, Trouble> {
        let mut query = self.0.prepare("SELECT epoch, body FROM report WHERE id = $1")?;
        let mut rows = query.query([id])?;
        match rows.next()? {
            None => Ok(None),
            Some(row) => Ok(Some((row.get(0)?, row.get(1)?))),
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn begin(&mut self) -> Result<(), Trouble> {
        self.run("BEGIN IMMEDIATE")
    }

    fn wait_no_longer_than_100_ms(&mut self) -> Result<(), Trouble> {
        Ok(self.0.busy_timeout(Duration::from_millis(100))?)
    }

    fn audit(&mut self, id: &str) -> Result<Vec<i64>, Trouble> {
        let mut query = self.0.prepare("SELECT epoch FROM audit WHERE id = $1 ORDER BY n")?;
        let epochs = query.query_map([id], |row| row.get(0))?;
        Ok(epochs.collect::<Result<_, _>>()?)
    }
}
