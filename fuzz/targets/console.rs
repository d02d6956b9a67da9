//! The fuzzer of [`stacklab_fuzz::console`].
#![no_main]
use stacklab_fuzz::{console, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(console, data));
