//! What trials run on.

pub mod lab;
pub mod placement;
pub mod remote;
pub mod routed;
