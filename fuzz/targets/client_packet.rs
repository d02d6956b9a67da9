//! The fuzzer of [`stacklab_fuzz::client_packet`].
#![no_main]
use stacklab_fuzz::{client_packet, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(client_packet, data));
