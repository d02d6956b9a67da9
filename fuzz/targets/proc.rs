//! The fuzzer of [`stacklab_fuzz::proc`].
#![no_main]
use stacklab_fuzz::{prepare, proc, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(proc, data));
