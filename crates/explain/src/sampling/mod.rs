//! CPU samples: kernel functions, each of a stage of the network stack.
//!
//! Samples are of the processors' cycles where perf_event_open counts them, else of the kernel's software clock
//! (cpu-clock), which every machine has. [`Sampler`] takes them in windows, and leaves windows out in which nothing is
//! sampled: both together show what sampling costs.

mod classes;
pub(crate) mod sampler;
mod shares;
mod stacks;
pub(crate) mod stages;
pub(crate) mod symbols;
mod sys;

pub use sampler::{Sampler, Timing};
