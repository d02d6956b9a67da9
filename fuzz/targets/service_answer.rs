//! The fuzzer of [`stacklab_fuzz::service_answer`].
#![no_main]
use stacklab_fuzz::{limited, prepare, service_answer};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(service_answer, data));
