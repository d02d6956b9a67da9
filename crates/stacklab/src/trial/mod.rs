//! One trial, from a cell's settings to a run.

pub mod clock_correction;
pub mod guest_cpu;
pub mod services;
pub mod settings;
