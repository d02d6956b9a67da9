//! Errors of an explanation.

use stacklab_campaign::CampaignError;
use stacklab_guests::kernel::BuildError;
use stacklab_store::StoreError;
use std::io::{self, ErrorKind};

/// Why nothing is explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// Samples cannot explain this study.
    #[error("{0}")]
    Study(String),
    /// The CPUs cannot be sampled.
    #[error("cannot {attempted}: {reason}{}", advice(reason))]
    Sampling {
        /// The step that failed.
        attempted: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// This kernel hangs when it is sampled.
    #[error(
        "cannot sample the CPUs: sampling by the software clock can hang Linux {release}; use a kernel before 6.16 or from 6.18 on"
    )]
    Hangs {
        /// The kernel's version.
        release: String,
    },
    /// Instructions cannot be counted.
    #[error("cannot count instructions: {0}")]
    Exact(String),
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

impl From<StoreError> for ExplainError {
    fn from(error: StoreError) -> Self {
        CampaignError::from(error).into()
    }
}

pub(crate) fn attempt<T>(attempted: impl Into<String>, result: io::Result<T>) -> Result<T, ExplainError> {
    result.map_err(|reason| ExplainError::Sampling { attempted: attempted.into(), reason })
}

fn advice(reason: &io::Error) -> &'static str {
    match reason.kind() {
        ErrorKind::PermissionDenied => "; run as root, or with CAP_PERFMON and CAP_SYSLOG",
        _ => "",
    }
}
