//! What a test of a fence or a gate needs (feature `testing`).
//!
//! [`ManualClock`] moves only when it is told to. [`gates`] holds a gate, of this crate or of one's
//! own, against the naive idea of one.

mod clock;
pub mod gates;

pub use clock::ManualClock;
