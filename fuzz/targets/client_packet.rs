//! The fuzzer of [`stacklab_fuzz::client_packet`].
#![no_main]
use stacklab_fuzz::{client_packet, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(client_packet, data));
