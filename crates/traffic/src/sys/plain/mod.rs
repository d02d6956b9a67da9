//! Portable fallbacks: one call per message, poll for readiness. On Linux for tests only.

mod batch;
mod ready;

#[cfg(not(target_os = "linux"))]
pub(crate) use batch::Batch;
#[cfg(not(target_os = "linux"))]
pub(crate) use ready::Ready;
