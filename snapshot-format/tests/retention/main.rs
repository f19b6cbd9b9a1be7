//! Retention: what is decided, and what is deleted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod prune;
mod rules;

#[path = "../support/mod.rs"]
mod support;
