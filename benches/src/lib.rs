//! What the primitives cost, each beside the bare operations that it cannot do without, so that a figure
//! says what the primitive itself adds.
//!
//! The benches are in `benches/` (`cargo bench -p benches`); `report` measures what has a bar in one go
//! and writes `docs/performance.md`. Both use what is here. See the package's `README.md` for how to
//! read the figures.
//!
//! A measurement that cannot be made panics: a figure that came about otherwise would say nothing.

#![allow(clippy::missing_panics_doc, reason = "all of it panics, as the page above says")]

pub mod bare;
pub mod clocks;
pub mod holder;
pub mod paired;
#[cfg(feature = "peers")]
pub mod peers;
pub mod performance;
pub mod plots;
pub mod prompted;
pub mod record;
pub mod rows;
pub mod scale;
pub mod takeover;
