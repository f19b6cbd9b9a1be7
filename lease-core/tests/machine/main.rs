//! The state machine, driven by hand and in small worlds.

mod rules;
mod world;
