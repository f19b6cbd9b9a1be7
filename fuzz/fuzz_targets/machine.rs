//! See `holdfast_fuzz::machine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::machine::run(data));
