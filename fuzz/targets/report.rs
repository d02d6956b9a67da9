//! The fuzzer of [`stacklab_fuzz::report`].
#![no_main]
use stacklab_fuzz::{limited, prepare, report};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(report, data));
