//! What a user would pick instead, on this machine: etcd, Redis, PostgreSQL. `tests/peers.sh` installs and
//! starts them, and prints the variables by which they are found here.
//!
//! Each does what its users do with it; how durable that is, its row says.

mod etcd;
mod postgres;
mod redis;

pub use self::{etcd::Etcd, postgres::Postgres, redis::Redis};

use std::error::Error;

/// Why a peer cannot be measured.
pub type Refused = Box<dyn Error + Send + Sync>;

/// How long a lease of a peer lives: none ends while it is measured.
const TTL_SECONDS: u32 = 600;
const KEY: &str = "holdfast-bench";

/// A peer that the environment names, or why not.
///
/// # Errors
///
/// If it is not named, or does not answer.
pub fn named<P>(
    variable: &str,
    connect: impl FnOnce(&str) -> Result<P, Refused>,
) -> Result<P, Refused> {
    let url = std::env::var(variable).map_err(|_| format!("{variable} names none"))?;
    connect(&url).map_err(|error| format!("the one that {variable} names: {error}").into())
}
