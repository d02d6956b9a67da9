//! The fuzzer of [`stacklab_fuzz::generator_output`].
#![no_main]
use stacklab_fuzz::{generator_output, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(generator_output, data));
