//! The fuzzer of [`stacklab_fuzz::agent_request`].
#![no_main]
use stacklab_fuzz::{agent_request, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(agent_request, data));
