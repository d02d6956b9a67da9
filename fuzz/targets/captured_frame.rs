//! The fuzzer of [`stacklab_fuzz::captured_frame`].
#![no_main]
use stacklab_fuzz::{captured_frame, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(captured_frame, data));
