//! The fuzzer of [`stacklab_fuzz::package_file`].
#![no_main]
use stacklab_fuzz::{package_file, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(package_file, data));
