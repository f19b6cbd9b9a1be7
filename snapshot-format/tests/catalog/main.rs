//! What the catalog says of what is stored, and what it costs.

mod cost;
mod floor;
mod restore;
mod verdicts;

#[path = "../support/mod.rs"]
mod support;
