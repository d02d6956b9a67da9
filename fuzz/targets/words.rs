//! The fuzzer of [`stacklab_fuzz::words`].
#![no_main]
use stacklab_fuzz::{prepare, run_within_limit, words};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(words, data));
