//! The fuzzer of [`stacklab_fuzz::path_answer`].
#![no_main]
use stacklab_fuzz::{limited, path_answer, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(path_answer, data));
