//! The fuzzer of [`stacklab_fuzz::engine_output`].
#![no_main]
use stacklab_fuzz::{engine_output, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(engine_output, data));
