//! The fuzzer of [`stacklab_fuzz::captured_frame`].
#![no_main]
use stacklab_fuzz::{captured_frame, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(captured_frame, data));
