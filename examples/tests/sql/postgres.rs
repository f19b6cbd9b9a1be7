//! PostgreSQL, where the environment names one.

use crate::table::{Connection, Server, statement};
use fencing::testing::gates::Trouble;
use postgres::{Client, NoTls, error::SqlState};
use std::sync::{Arc, Once};

struct Postgres(Client);

pub(crate) fn server(url: &str, isolation: &'static str) -> Server {
    static PREPARED: Once = Once::new();
    let url = url.to_owned();
    Arc::new(move || {
        let mut client = Client::connect(&url, NoTls).unwrap();
        PREPARED.call_once(|| prepare(&mut client));
        let settings = format!(
            "SET synchronous_commit = off; SET default_transaction_isolation = '{isolation}'"
        );
        client.batch_execute(&settings).unwrap();
        Box::new(Postgres(client))
    })
}

/// The table of the document, and one that notes every change of it, in the order in which the row's
/// lock let them through.
fn prepare(client: &mut Client) {
    let audit = "CREATE TABLE audit (n BIGSERIAL PRIMARY KEY, id TEXT, epoch BIGINT);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO audit (id, epoch) VALUES (new.id, new.epoch); RETURN new; END $$;
        CREATE TRIGGER noted AFTER INSERT OR UPDATE ON report FOR EACH ROW EXECUTE FUNCTION note();";
    let schema = statement("schema");
    let anew = "DROP TABLE IF EXISTS report, audit; DROP FUNCTION IF EXISTS note;";
    client.batch_execute(&format!("{anew} {schema}; {audit}")).unwrap();
}

/// Neither admitted nor stale: another transaction was quicker. The document says to try again.
fn is_to_be_repeated(error: &postgres::Error) -> bool {
    error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
}

impl Connection for Postgres {
    fn change(
        &mut self,
        sql: &str,
        id: &str,
        epoch: i64,
        body: Option<&str>,
    ) -> Result<u64, Trouble> {
        loop {
            let changed = match sql.contains("$3") {
                true => self.0.execute(sql, &[&id, &epoch, &body]),
                false => self.0.execute(sql, &[&id, &epoch]),
            };
            match changed {
                Err(error) if is_to_be_repeated(&error) => {}
                changed => return Ok(changed?),
            }
        }
    }

    fn row(&mut self, id: &str) -> Result<Option<(i64, Option<String>)>, Trouble> {
        loop {
            match self.0.query_opt("SELECT epoch, body FROM report WHERE id = $1", &[&id]) {
                Err(error) if is_to_be_repeated(&error) => {}
                row => return Ok(row?.map(|row| (row.get(0), row.get(1)))),
            }
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        Ok(self.0.batch_execute(sql)?)
    }

    fn begin(&mut self) -> Result<(), Trouble> {
        self.run("BEGIN")
    }

    fn wait_no_longer_than_100_ms(&mut self) -> Result<(), Trouble> {
        self.run("SET lock_timeout = '100ms'")
    }

    fn audit(&mut self, id: &str) -> Result<Vec<i64>, Trouble> {
        let rows = self.0.query("SELECT epoch FROM audit WHERE id = $1 ORDER BY n", &[&id])?;
        Ok(rows.into_iter().map(|row| row.get(0)).collect())
    }
}
