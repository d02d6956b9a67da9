//! The fuzzer of [`stacklab_fuzz::package_file`].
#![no_main]
use stacklab_fuzz::{limited, package_file, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(package_file, data));
