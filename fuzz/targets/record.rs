//! The fuzzer of [`stacklab_fuzz::record`].
#![no_main]
use stacklab_fuzz::{prepare, record, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(record, data));
