//! See `holdfast_fuzz::audit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::audit::run(data));
