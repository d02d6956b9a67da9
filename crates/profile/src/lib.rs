//! What processors do: samples of kernel functions, each of a stage of the network stack.
//!
//! Samples are of the kernel's software clock (perf_event_open, cpu-clock), which every machine has. [`Sampler`]
//! takes them in windows, and leaves windows out in which nothing is sampled: what sampling costs is known by both.

mod sampler;
mod stacks;
mod stages;
mod symbols;
mod sys;

pub use sampler::{Sampler, SamplingError};
pub use stages::StageMap;
pub use symbols::Symbols;
pub use sys::check;
