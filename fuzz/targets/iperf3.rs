//! The fuzzer of [`stacklab_fuzz::iperf3`].
#![no_main]
use stacklab_fuzz::{iperf3, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(iperf3, data));
