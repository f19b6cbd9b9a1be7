//! See `holdfast_fuzz::history`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::history::run(data));
