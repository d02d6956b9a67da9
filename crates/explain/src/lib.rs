//! Why two cells differ: where in the network stack the CPU time goes.
//!
//! * [`Sampler`]: samples the CPUs while a campaign runs
//! * [`explanations`]: nanoseconds per message of each stage, for each pair of cells in a record, from samples and the
//!   slices of two interleaved arms
//! * [`explain_verdicts`]: samples pairs of cells after a campaign, for `run --explain`
//! * [`count_instructions`]: instructions per message by function, exact, in an emulated machine
//! * [`count_programs`]: instructions per request of a study's programs, by function, in user space
//! * [`fuzzing`]: parsers of untrusted input, for fuzz targets
//! * [`check_study`] and [`check_sampling`]: refusals before anything is built

mod costs;
mod exact;
mod explanations;
mod sampling;
mod study;

pub use exact::beside::{KernelSource, check_countable, count_beside};
pub use exact::campaign::{count_campaign, list_missing_counts};
pub use exact::inside::send_plan;
pub use exact::plan::{ExactPlan, ExactRequest};
pub use exact::programs::campaign::count_programs_of_campaign;
pub use exact::programs::{
    DEFAULT_REQUESTS, GET_USER_EMULATOR, USER_EMULATOR, check_programs, check_user_emulator, count_programs,
};
pub use exact::{KERNEL, check_emulator, count_instructions, supported_emulators};
pub use explanations::{explain_verdicts, explanations};
pub use sampling::profile::Profile;
pub use sampling::{Sampler, Timing};
pub use study::{PROBES, check_sampling, check_study, compared_cells, sampled_study};

use stacklab_campaign::CampaignError;
use stacklab_guests::kernel::BuildError;
use stacklab_store::StoreError;
use std::io;

/// Arms of a sampled trial: two, and one of them as two more.
const ARMS: u64 = 4;
/// An arm's traffic in a sampled trial, and its warm-up, nanoseconds. Each trial has its own sockets, and stages of
/// like sockets differ a little: many short trials even that out.
const ARM_NS: u64 = 200_000_000;
const WARMUP_NS: u64 = 50_000_000;
/// A slice of an arm, nanoseconds.
const SLICE_NS: u64 = 4_000_000;

/// Why nothing is explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// Samples cannot explain this study.
    #[error("{0}")]
    Study(String),
    /// The CPUs cannot be sampled.
    #[error("cannot {0}")]
    Sampling(String),
    /// Instructions cannot be counted.
    #[error("cannot count instructions: {0}")]
    Exact(String),
    /// A program of the study's fails, or its counts are not those of requests.
    #[error("cannot count instructions of {0}")]
    Program(String),
    /// The guest's kernel does not boot, or cannot carry the messages.
    #[error("cannot count instructions of this kernel: {0}")]
    Kernel(String),
    /// The guest's kernel cannot be built.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// The user interrupted a count.
    #[error("interrupted; nothing was kept")]
    Interrupted,
    /// There is no room for a record that is not kept.
    #[error("could not create a temporary folder: {0}")]
    Folder(io::Error),
    /// The pair cannot be measured.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
}

impl ExplainError {
    /// Why something could not be counted, where a sentence says so already.
    pub(crate) fn reason(&self) -> String {
        match self {
            ExplainError::Exact(reason) | ExplainError::Kernel(reason) => reason.clone(),
            other => other.to_string(),
        }
    }
}

impl From<StoreError> for ExplainError {
    fn from(error: StoreError) -> Self {
        CampaignError::from(error).into()
    }
}

fn attempt<T>(attempted: impl Into<String>, result: io::Result<T>) -> Result<T, ExplainError> {
    result.map_err(|reason| {
        let advice = match reason.kind() {
            io::ErrorKind::PermissionDenied => "; run as root, or with CAP_PERFMON and CAP_SYSLOG",
            _ => "",
        };
        ExplainError::Sampling(format!("{}: {reason}{advice}", attempted.into()))
    })
}

/// Parsers of what an emulated machine leaves: untrusted input. Public for the fuzz targets (`fuzz/`) only.
pub mod fuzzing {
    use stacklab_model::ExactCell;

    /// The cell of 128-byte UDP messages from the plugin's counts and the guest's report, or the reason without one.
    pub fn exact_cell(counts: &[u8], report: &[u8]) -> Result<ExactCell, String> {
        let plan = "udp:ipv4@loopback/128*0+ipv6@loopback/128*0".parse()?;
        Ok(crate::exact::counts::read_counts(&plan, counts, report)?.1.remove(0))
    }
}
