//! The fuzzer of [`stacklab_fuzz::fleet_message`].
#![no_main]
use stacklab_fuzz::{fleet_message, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(fleet_message, data));
