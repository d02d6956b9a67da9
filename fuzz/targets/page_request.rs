//! The fuzzer of [`stacklab_fuzz::page_request`].
#![no_main]
use stacklab_fuzz::{limited, page_request, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(page_request, data));
