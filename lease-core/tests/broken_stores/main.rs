//! Stores that are broken, each in one way: the conformance suite and the probe must say so.
//!
//! A check that catches nothing proves nothing: every case of the suite, and every step of the
//! probe, is failed by some store here.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of a test fail by panicking, as the test does"
)]

mod probe;
mod store;
mod suite;
