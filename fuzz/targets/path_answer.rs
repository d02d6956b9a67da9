//! The fuzzer of [`stacklab_fuzz::path_answer`].
#![no_main]
use stacklab_fuzz::{path_answer, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(path_answer, data));
