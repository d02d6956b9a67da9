//! The fuzzer of [`stacklab_fuzz::host_reports`].
#![no_main]
use stacklab_fuzz::{host_reports, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(host_reports, data));
