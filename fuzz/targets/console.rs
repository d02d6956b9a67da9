//! The fuzzer of [`stacklab_fuzz::console`].
#![no_main]
use stacklab_fuzz::{console, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(console, data));
