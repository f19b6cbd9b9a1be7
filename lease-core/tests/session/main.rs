//! The machine of a session in small worlds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod fences;
mod holding;
mod lives;
mod parts;
mod random;
mod rules;
mod store;
mod wishes;
mod world;
