//! The fuzzer of [`stacklab_fuzz::guest_message`].
#![no_main]
use stacklab_fuzz::{guest_message, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(guest_message, data));
