//! The fuzzer of [`stacklab_fuzz::mux`].
#![no_main]
use stacklab_fuzz::{mux, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(mux, data));
