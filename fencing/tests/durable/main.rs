//! Crash-safe files against planted files, full disks, failing calls and `kill -9`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod crashes;
mod files;
mod locks;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Some(mode) = std::env::var_os(support::CHILD) {
        crashes::run_child(mode.to_str().unwrap());
        return;
    }
    let trials = files::trials().into_iter().chain(locks::trials()).chain(crashes::trials());
    libtest_mimic::run(&Arguments::from_args(), trials.collect::<Vec<Trial>>()).exit();
}
