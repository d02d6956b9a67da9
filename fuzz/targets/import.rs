//! The fuzzer of [`stacklab_fuzz::import`].
#![no_main]
use stacklab_fuzz::{import, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(import, data));
