//! The one seam to the operating system: all platform code and all `unsafe` of the engine is below here.

mod batch;
#[cfg(test)]
pub mod counting;
mod linux;
mod options;
mod stamps;

pub use batch::Batch;
pub use linux::*;
pub use options::*;
pub use stamps::*;

/// Nanoseconds of a host's clock.
pub type Nanos = u64;
