//! Retention: what is decided, and what is deleted.

mod prune;
mod rules;

#[path = "../support/mod.rs"]
mod support;
