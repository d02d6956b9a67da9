//! The fuzzer of [`stacklab_fuzz::import`].
#![no_main]
use stacklab_fuzz::{import, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(import, data));
