//! See `holdfast_fuzz::session_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::session_record::run(data));
