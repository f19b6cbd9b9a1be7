//! The state machine, driven by hand and in small worlds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod clocks;
mod confirm;
mod doubt;
mod ends;
mod epochs;
mod parts;
mod random;
mod regressions;
mod release;
mod renewal;
mod rig;
mod rules;
mod sightings;
mod snapshots;
mod takeover;
mod trust;
mod world;
