//! The fuzzer of [`stacklab_fuzz::words`].
#![no_main]
use stacklab_fuzz::{limited, prepare, words};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(words, data));
