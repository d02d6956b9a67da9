//! The fuzzer of [`stacklab_fuzz::report`].
#![no_main]
libfuzzer_sys::fuzz_target!(init: stacklab_fuzz::signals_have_room(), |data: &[u8]| stacklab_fuzz::report(data));
