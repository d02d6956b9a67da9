//! The fuzzer of [`stacklab_fuzz::generator_output`].
#![no_main]
use stacklab_fuzz::{generator_output, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(generator_output, data));
