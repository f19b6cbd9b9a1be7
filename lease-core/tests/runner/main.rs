//! The tokio runner, in paused time: minutes pass at once, and always the same way.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod ending;
mod handing_over;
mod rig;
mod sessions;
mod shards;
mod starting;
mod telling;
