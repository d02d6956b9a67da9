//! The fuzzer of [`stacklab_fuzz::radio_frame`].
#![no_main]
use stacklab_fuzz::{prepare, radio_frame, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(radio_frame, data));
