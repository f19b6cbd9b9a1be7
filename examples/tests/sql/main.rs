//! The statements of docs/fencing.md, as they stand there, on SQLite and on PostgreSQL.
//!
//! PostgreSQL is found by `HA_TEST_POSTGRES_URL` (`tests/postgres.sh` starts one), and reported as
//! *ignored* without it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod checks;
mod postgres;
mod sqlite;
mod table;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials = Vec::new();
    checks::add_trials(&mut trials, "sqlite", Some(sqlite::server()));
    let url = std::env::var("HA_TEST_POSTGRES_URL").ok();
    for (name, isolation) in
        [("postgres", "read committed"), ("postgres_serializable", "serializable")]
    {
        let server = url.as_ref().map(|url| postgres::server(url, isolation));
        checks::add_trials(&mut trials, name, server);
    }
    trials.push(Trial::test("a_token_above_what_a_column_holds_is_refused", || {
        checks::tokens_fit_or_are_refused();
        Ok(())
    }));
    trials.push(Trial::test("the_example_has_the_statements_of_the_document", || {
        checks::the_example_has_the_statements_of_the_document();
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
