//! The end-to-end tests: the real program on real testbeds, one module for each promised property. They need root and
//! measure. They form one program, because each test links everything; each test runs in its own process. The folder
//! of a module says what may run beside its tests (`.config/nextest.toml`).

#![allow(clippy::print_stderr, reason = "the test's own output, also that of its threads")]

mod guest;
mod light;
mod machine;
mod rates;
mod support;
