//! What the fuzz targets do and assert. A panic is a finding.
//!
//! Each module has a `run` that takes a byte string; the targets in `fuzz_targets/` hand them what
//! libFuzzer makes up, and `tests/corpus.rs` hands them the seed corpus, on a stable toolchain.
#![forbid(unsafe_code)]

pub mod audit;
pub mod history;
pub mod machine;
pub mod record;
pub mod session_record;
pub mod snapshot;
