//! What a takeover decides: over all combinations of its facts, over any facts at all, and what it
//! costs to collect them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod forced;
mod gather;
mod history;
mod matrix;
mod properties;
mod row;

#[path = "../support/mod.rs"]
mod support;
