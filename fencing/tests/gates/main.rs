//! All gates of this crate against one naive model, and the gate in a file against damage, failing
//! disks, and processes that are killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod compare;
mod file;
mod kills;
#[allow(dead_code, reason = "each of the binaries that share it uses its part")]
#[path = "../durable/support.rs"]
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Some(mode) = std::env::var_os(support::CHILD) {
        kills::run_child(mode.to_str().unwrap());
        return;
    }
    let trials = compare::trials().into_iter().chain(file::trials()).chain(kills::trials());
    libtest_mimic::run(&Arguments::from_args(), trials.collect::<Vec<Trial>>()).exit();
}
