//! PostgreSQL: an advisory lock, and a row that is a lease.

use super::{KEY, Refused, TTL_SECONDS};
use postgres::{Client, NoTls, Statement};
use std::fmt;

/// A row that is held.
pub struct Postgres {
    client: Client,
    renew: Statement,
    take: Statement,
    give: Statement,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl Postgres {
    /// At `postgres://user@host:port/database`.
    ///
    /// # Errors
    ///
    /// If it does not answer, or tables cannot be made.
    pub fn connect(url: &str) -> Result<Self, Refused> {
        let mut client = Client::connect(url, NoTls)?;
        client.batch_execute(
            "SET synchronous_commit = on;
             CREATE TABLE IF NOT EXISTS holdfast_bench
               (name text PRIMARY KEY, holder text, epoch bigint, until timestamptz);
             TRUNCATE holdfast_bench;",
        )?;
        let until = format!("now() + interval '{TTL_SECONDS} seconds'");
        let take = client.prepare(&format!(
            "INSERT INTO holdfast_bench VALUES ($1, 'own', 1, {until})
             ON CONFLICT (name) DO UPDATE SET holder = 'own', epoch = holdfast_bench.epoch + 1, until = {until}
             WHERE holdfast_bench.until < now()"
        ))?;
        let renew = client.prepare(&format!(
            "UPDATE holdfast_bench SET until = {until} WHERE name = $1 AND holder = 'own' AND until > now()"
        ))?;
        let give = client.prepare(
            "UPDATE holdfast_bench SET until = 'epoch' WHERE name = $1 AND holder = 'own'",
        )?;
        client.execute(&take, &[&KEY])?;
        Ok(Self { client, renew, take, give })
    }

    /// One `UPDATE` of the row, committed to disk.
    pub fn renew(&mut self) {
        let rows = self.client.execute(&self.renew, &[&KEY]);
        assert_eq!(rows.ok(), Some(1), "it is still held");
    }

    /// Takes a row if it is free, and gives it back: two commits.
    pub fn acquire_and_release(&mut self) {
        for statement in [&self.take, &self.give] {
            let rows = self.client.execute(statement, &[&"holdfast-bench-lock"]);
            assert_eq!(rows.ok(), Some(1), "nobody else locks");
        }
    }

    /// An advisory lock of the session: nothing is written, and it ends with the connection.
    pub fn lock_and_unlock(&mut self) {
        for query in ["SELECT pg_try_advisory_lock(4711)", "SELECT pg_advisory_unlock(4711)"] {
            let row = self.client.query_one(query, &[]);
            assert_eq!(row.ok().map(|row| row.get(0)), Some(true), "nobody else locks");
        }
    }
}
