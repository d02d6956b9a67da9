//! Testbeds inside a guest: the part on this machine, and where a study's testbeds are built.

pub(crate) mod batches;
pub(crate) mod mux;
pub(crate) mod placement;
pub(crate) mod requirements;
pub(crate) mod routed;
pub(crate) mod wifi;
