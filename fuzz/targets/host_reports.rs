//! The fuzzer of [`stacklab_fuzz::host_reports`].
#![no_main]
use stacklab_fuzz::{host_reports, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(host_reports, data));
