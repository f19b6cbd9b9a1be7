//! The fence under every order of its loads and stores that the memory model allows.
//!
//! ```console
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p fencing --test loom --release
//! ```
//!
//! Built otherwise there is nothing to explore, and every model is reported as ignored.

#[cfg(loom)]
mod models;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// A model and its name.
type Model = (&'static str, fn());

#[cfg(loom)]
const MODELS: &[Model] = models::ALL;
#[cfg(not(loom))]
const MODELS: &[Model] = &[("every_model_needs_cfg_loom", || ())];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = MODELS.iter().map(|(name, model)| {
        let trial = Trial::test(*name, || {
            model();
            Ok(())
        });
        trial.with_ignored_flag(cfg!(not(loom)))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
