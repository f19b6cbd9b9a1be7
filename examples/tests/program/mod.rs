//! The examples as programs.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// Cargo builds the examples with the tests, and puts them beside the directory of the tests.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let path: PathBuf = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --examples` first", path.display());
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}
