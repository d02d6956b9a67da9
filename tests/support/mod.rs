//! Shared by the end-to-end tests.

pub mod capture;
pub mod lab;
pub mod leftovers;
pub mod program;
pub mod records;
pub mod sys;
pub mod tun;
