//! The fuzzer of [`stacklab_fuzz::record`].
#![no_main]
use stacklab_fuzz::{limited, prepare, record};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(record, data));
