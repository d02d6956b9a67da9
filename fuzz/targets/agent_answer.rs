//! The fuzzer of [`stacklab_fuzz::agent_answer`].
#![no_main]
use stacklab_fuzz::{agent_answer, limited, prepare};
libfuzzer_sys::fuzz_target!(init: prepare(), |data: &[u8]| limited(agent_answer, data));
