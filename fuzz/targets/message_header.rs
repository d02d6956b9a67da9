//! The fuzzer of [`stacklab_fuzz::message_header`].
#![no_main]
use stacklab_fuzz::{limited, message_header, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(message_header, data));
