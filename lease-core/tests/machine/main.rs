//! The state machine, driven by hand and in small worlds.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod rules;
mod world;
