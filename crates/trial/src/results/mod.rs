//! The reports of two hosts, validated and turned into figures.

mod cpu;
mod delay;
mod found_path;
pub mod interleaved;
mod locations;
mod missing;
pub(crate) mod options;
mod rfc6349;
mod standstill;
mod tcp;
mod throughput;
pub(crate) mod validate;
mod values;
mod warnings;

pub use stacklab_traffic::timing::tick_ns;
pub use throughput::drops;
pub use values::values;
pub use warnings::warnings;
