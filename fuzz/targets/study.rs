//! The fuzzer of [`stacklab_fuzz::study`].
#![no_main]
use stacklab_fuzz::{prepare, run_within_limit, study};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(study, data));
