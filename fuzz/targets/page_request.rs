//! The fuzzer of [`stacklab_fuzz::page_request`].
#![no_main]
use stacklab_fuzz::{page_request, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(page_request, data));
