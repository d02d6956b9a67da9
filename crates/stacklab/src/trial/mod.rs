//! One trial, from a cell's settings to its run.

mod adapter;
mod channel;
pub mod clock_correction;
pub mod clock_offset;
pub mod evidence;
pub mod figures;
#[cfg(test)]
pub mod fixtures;
pub mod guest_cpu;
mod other_load;
mod routers;
pub mod run;
mod services;
pub mod settings;
mod spec;
mod wifi;
