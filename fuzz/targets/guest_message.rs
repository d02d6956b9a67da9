//! The fuzzer of [`stacklab_fuzz::guest_message`].
#![no_main]
use stacklab_fuzz::{guest_message, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(guest_message, data));
