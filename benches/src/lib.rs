//! What the primitives cost. The benches are in `benches/`; run them with `cargo bench -p benches`, and
//! see the package's `README.md` for how to read them.
//!
//! Each bench measures beside the primitive the bare operations that it cannot do without, so that a
//! figure says what the primitive itself adds.
