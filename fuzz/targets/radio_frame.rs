//! The fuzzer of [`stacklab_fuzz::radio_frame`].
#![no_main]
use stacklab_fuzz::{limited, prepare, radio_frame};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(radio_frame, data));
