//! The state machine, driven by hand and in small worlds.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod clocks;
mod confirm;
mod doubt;
mod ends;
mod epochs;
mod parts;
mod random;
mod release;
mod renewal;
mod rig;
mod rules;
mod sightings;
mod takeover;
mod trust;
mod world;
