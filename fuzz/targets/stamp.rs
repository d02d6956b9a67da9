//! The fuzzer of [`stacklab_fuzz::stamp`].
#![no_main]
use stacklab_fuzz::{limited, prepare, stamp};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(stamp, data));
