//! What the catalog says of what is stored, and what it costs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod cost;
mod floor;
mod restore;
mod verdicts;

#[path = "../support/mod.rs"]
mod support;
