//! The fuzzer of [`stacklab_fuzz::study`].
#![no_main]
use stacklab_fuzz::{limited, prepare, study};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(study, data));
