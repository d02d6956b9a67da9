//! Shared by the end-to-end tests.

pub mod leftovers;
pub mod program;
