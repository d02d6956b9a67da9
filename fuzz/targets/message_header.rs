//! The fuzzer of [`stacklab_fuzz::message_header`].
#![no_main]
use stacklab_fuzz::{message_header, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(message_header, data));
