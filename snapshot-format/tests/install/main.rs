//! The swap of a database against its contract, hostile directories, kills, failing calls and power
//! cuts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod child;
mod contract;
mod crashes;
mod disk;
mod hostile;
mod permits;
mod place;
mod power;
#[allow(dead_code, reason = "each of the binaries that share it uses its part")]
#[path = "../../../fencing/tests/durable/support.rs"]
mod support;
mod trace;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Some(mode) = std::env::var_os(support::CHILD) {
        child::be(mode.to_str().unwrap());
    }
    let trials: Vec<Trial> = [
        contract::trials(),
        crashes::trials(),
        hostile::trials(),
        permits::trials(),
        power::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
