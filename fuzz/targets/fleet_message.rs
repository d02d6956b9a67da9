//! The fuzzer of [`stacklab_fuzz::fleet_message`].
#![no_main]
use stacklab_fuzz::{fleet_message, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(fleet_message, data));
