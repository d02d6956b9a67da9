//! The fuzzer of [`stacklab_fuzz::exact_counts`].
#![no_main]
use stacklab_fuzz::{exact_counts, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(exact_counts, data));
