//! The fuzzer of [`stacklab_fuzz::arrivals`].
#![no_main]
use stacklab_fuzz::{arrivals, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(arrivals, data));
