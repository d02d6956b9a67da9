//! One trial, from a cell's settings to its run.

mod adapter;
mod channel;
pub(crate) mod clock_correction;
pub mod clock_offset;
pub mod evidence;
pub mod figures;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod guest_cpu;
pub mod other_load;
mod routers;
pub(crate) mod run;
mod services;
pub(crate) mod settings;
mod spec;
mod wifi;
