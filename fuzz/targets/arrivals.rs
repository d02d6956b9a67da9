//! The fuzzer of [`stacklab_fuzz::arrivals`].
#![no_main]
use stacklab_fuzz::{arrivals, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(arrivals, data));
