//! The fuzzer of [`stacklab_fuzz::report`].
#![no_main]
use stacklab_fuzz::{prepare, report, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(report, data));
