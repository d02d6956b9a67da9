//! The figures of the reports of two hosts.

mod cpu;
mod delay;
pub mod interleaved;
mod locations;
mod standstill;
mod tcp;
mod throughput;
mod values;
mod warnings;

pub use stacklab_traffic::timing::tick_ns;
pub use throughput::drops;
pub use values::values;
pub use warnings::warnings;
