//! The figures of the reports of two hosts.

mod cpu;
mod delay;
mod found_path;
pub mod interleaved;
mod locations;
mod missing;
mod rfc6349;
mod standstill;
mod tcp;
mod throughput;
mod values;
mod warnings;

pub use stacklab_traffic::timing::tick_ns;
pub use throughput::drops;
pub use values::values;
pub use warnings::warnings;
