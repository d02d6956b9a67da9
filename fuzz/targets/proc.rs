//! The fuzzer of [`stacklab_fuzz::proc`].
#![no_main]
use stacklab_fuzz::{limited, prepare, proc};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(proc, data));
