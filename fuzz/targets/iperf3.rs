//! The fuzzer of [`stacklab_fuzz::iperf3`].
#![no_main]
use stacklab_fuzz::{iperf3, prepare, run_within_limit};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| run_within_limit(iperf3, data));
