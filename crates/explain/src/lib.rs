//! Why two cells differ: where in the network stack the CPU time goes.
//!
//! * [`Sampler`]: samples the CPUs while a campaign runs
//! * [`explanations`]: nanoseconds per message of each stage, for each pair of cells in a record, from samples and the
//!   slices of two interleaved arms
//! * [`explain_verdicts`]: samples pairs of cells after a campaign, for `run --explain`
//! * [`count_instructions`]: instructions per message by function, exact, in an emulated machine
//! * [`fuzzing`]: parsers of untrusted input, for fuzz targets
//! * [`check_study`] and [`check_sampling`]: refusals before anything is built

mod check;
mod costs;
mod error;
mod exact;
pub mod fuzzing;
mod record;
mod sampling;
mod study;
mod verdicts;

pub use check::{check_sampling, check_study};
pub use error::ExplainError;
pub use exact::beside::{check_countable, count_beside};
pub use exact::inside::send_counted;
pub use exact::plan::{ExactPair, ExactPlan};
pub use exact::qemu::{check_emulator, supported_emulators};
pub use exact::request::ExactRequest;
pub use exact::source::KernelSource;
pub use exact::{KERNEL, count_instructions};
pub use record::explanations;
pub use sampling::{Sampler, Timing};
pub use study::{PROBES, compared_cells, sampled_study};
pub use verdicts::explain_verdicts;

/// Arms of a sampled trial: two, and one of them as two more.
const ARMS: u64 = 4;
/// An arm's traffic in a sampled trial, and its warm-up, nanoseconds. Each trial has its own sockets, and stages of
/// like sockets differ a little: many short trials even that out.
const ARM_NS: u64 = 200_000_000;
const WARMUP_NS: u64 = 50_000_000;
/// A slice of an arm, nanoseconds.
const SLICE_NS: u64 = 4_000_000;
