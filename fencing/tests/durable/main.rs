//! Crash-safe files against planted files, full disks, failing calls and `kill -9`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod crashes;
mod entries;
mod files;
mod locks;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Some(mode) = std::env::var_os(support::CHILD) {
        let mode = mode.to_str().unwrap();
        entries::run_child(mode).unwrap_or_else(|| crashes::run_child(mode));
        return;
    }
    let trials: Vec<Trial> =
        [files::trials(), entries::trials(), locks::trials(), crashes::trials()]
            .into_iter()
            .flatten()
            .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
