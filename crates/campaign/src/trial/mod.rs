//! One trial, from a cell's settings to its run.

pub mod clock;
pub mod evidence;
pub mod figures;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod other_load;
pub(crate) mod routers;
pub(crate) mod run;
pub(crate) mod spec;
pub(crate) mod wifi;
