//! The fuzzer of [`stacklab_fuzz::exact_counts`].
#![no_main]
use stacklab_fuzz::{exact_counts, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(exact_counts, data));
