//! The fuzzer of [`stacklab_fuzz::greeting`].
#![no_main]
use stacklab_fuzz::{greeting, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(greeting, data));
