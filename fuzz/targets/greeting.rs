//! The fuzzer of [`stacklab_fuzz::greeting`].
#![no_main]
use stacklab_fuzz::{greeting, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(greeting, data));
