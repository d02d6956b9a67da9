//! The fuzzer of [`stacklab_fuzz::mux`].
#![no_main]
use stacklab_fuzz::{limited, mux, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(mux, data));
