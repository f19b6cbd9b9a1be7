//! The suite that every driver passes, each case by its name.

use crate::run_on_threads;
use lease_core::{
    ObjectKey,
    testing::conformance::{Capabilities, Case, Suite, Target},
};
use lease_local::LocalStore;
use libtest_mimic::{Failed, Trial};

/// The driver refuses to write what it would not read, so the suite cannot put a file there that is
/// too large; `contract` does it by hand.
const LOCAL: Capabilities =
    Capabilities { oversize_is_corrupt: false, tells_age: false, ..Capabilities::ALL };

pub(crate) fn trials() -> Vec<Trial> {
    Suite::new(LOCAL).cases().map(trial).collect()
}

fn trial(case: Case) -> Trial {
    let skipped = case.skipped_for(LOCAL).is_some();
    let run = move || {
        let scratch = tempfile::tempdir()?;
        let target = Target::new(LocalStore::open(scratch.path())?, ObjectKey::new("suite")?);
        run_on_threads(case.run(target)).map_err(Failed::from)
    };
    Trial::test(format!("conformance::{}", case.name()), run).with_ignored_flag(skipped)
}
