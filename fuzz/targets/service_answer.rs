//! The fuzzer of [`stacklab_fuzz::service_answer`].
#![no_main]
use stacklab_fuzz::{prepare, run_within_limit, service_answer};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(service_answer, data));
