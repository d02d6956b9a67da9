//! Errors of the program and their exit codes.

use stacklab_agent::AgentFailure;
use stacklab_agent::advice::listen_advice;
use stacklab_campaign::CampaignError;
use stacklab_explain::ExplainError;
use stacklab_serve::ServeError;
use stacklab_store::StoreError;
use stacklab_study::StudyErrors;
use stacklab_testbed::TestbedError;
use stacklab_traffic::protocol::AgentError;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Everything that ends a command early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A study cannot be measured, or its record not be used.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
    /// Conflicting options, or names that do not exist.
    #[error("{0}")]
    Usage(String),
    /// A table of published figures is invalid. This does not occur in an installed program.
    #[error("{0}")]
    Reference(#[from] stacklab_published::ReferenceError),
    /// The program was built without its web page.
    #[error("{0}")]
    NoPage(#[from] stacklab_report::page::NoPage),
    /// A system of a study has no image here, and the study can be run without it.
    #[error("{error}, or run the study without it: {without}")]
    NoImage {
        /// Which system, and how to get it.
        error: TestbedError,
        /// The options that leave it out.
        without: String,
    },
    /// A host failed in the middle of a campaign that can be resumed.
    #[error("{error}; results so far are in {}. Resume with: stacklab run --resume --out {}", path.display(), path.display())]
    Resumable {
        /// What failed.
        error: AgentError,
        /// The record.
        path: PathBuf,
    },
    /// This machine cannot run the quickstart.
    #[error("this machine cannot run a study yet: the list above says what is missing")]
    Unable,
    /// No run is valid.
    #[error("no run was valid: nothing can be compared (the reasons are in the report above)")]
    NothingValid,
    /// A family does not get through, or no figure has both.
    #[error("{0} (more is in the report above)")]
    NothingToCompare(String),
    /// A single measurement's observations contradict the request.
    #[error("the measurement is not valid (the reasons are in its output)")]
    InvalidRun,
    /// A record is worse than permitted.
    #[error(
        "B is worse than A by more than {percent} %, or lacks a figure that A has: {first}{}",
        and_more(*.others)
    )]
    Worse {
        /// The permitted change, per cent.
        percent: f64,
        /// The first figure that is worse.
        first: String,
        /// How many more figures are worse.
        others: usize,
    },
    /// A file of another tool cannot be read.
    #[error("could not import {file}: {reason}; nothing was written")]
    Import {
        /// The file.
        file: String,
        /// Where in it, and why.
        reason: String,
    },
    /// No importable test; lists what was skipped.
    #[error("{0}no test to import: nothing was written")]
    NothingToImport(String),
    /// A host does not work over each family.
    #[error("not every family works: {0}")]
    FamilyFails(String),
    /// The families of a host have drifted apart this many times.
    #[error("the ratio of the families has drifted ({0} times; see above)")]
    Drifted(u64),
    /// No agent serves at the other end of a measurement.
    #[error("{0}")]
    Unreachable(String),
    /// An agent ended early.
    #[error("{0}")]
    OwnAgent(#[from] AgentFailure),
    /// A manual testbed cannot be created, entered or ended.
    #[error("could not {attempted}: {reason}")]
    ManualTestbed {
        /// The step that failed.
        attempted: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// The page cannot be served, or a record not be shown.
    #[error("{0}")]
    Serve(#[from] ServeError),
    /// An iperf3 server cannot listen.
    #[error(
        "could not listen on {at}: {reason}{}",
        listen_advice(reason, "another server", "--listen :7000")
    )]
    Iperf3Server {
        /// The address.
        at: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// A step on this machine failed.
    #[error("could not {attempted}: {reason}")]
    System {
        /// The step that failed.
        attempted: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// Nothing can be explained.
    #[error("{0}")]
    Explain(ExplainError),
    /// Output could not be written.
    #[error("could not write {what}: {reason}")]
    Output {
        /// The output and its destination.
        what: String,
        /// The system's reason.
        reason: io::Error,
    },
}

impl Failure {
    /// Its text for a terminal: what files and other hosts said has no control characters.
    pub(crate) fn printed(&self) -> String {
        stacklab_model::printable_lines(&self.to_string())
    }

    /// Whether the user interrupted.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self, Failure::Campaign(error) if error.is_interruption())
    }

    /// The program's exit code; `stacklab --help` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The same, as a number.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Campaign(error) | Failure::Serve(ServeError::Campaign(error)) => campaign_code(error),
            Failure::Usage(_)
            | Failure::Serve(ServeError::Usage(_))
            | Failure::Explain(ExplainError::Study(_)) => 2,
            Failure::Output { .. }
            | Failure::System { .. }
            | Failure::OwnAgent(_)
            | Failure::Reference(_)
            | Failure::NoPage(_)
            | Failure::Iperf3Server { .. }
            | Failure::Explain(ExplainError::Folder(_))
            | Failure::Serve(_) => 1,
            Failure::NoImage { .. }
            | Failure::Unable
            | Failure::ManualTestbed { .. }
            | Failure::Explain(_) => 3,
            Failure::Resumable { .. } | Failure::Unreachable(_) => 5,
            Failure::NothingValid | Failure::NothingToCompare(_) => 6,
            Failure::InvalidRun => 7,
            Failure::Worse { .. } => 8,
            Failure::FamilyFails(_) => 9,
            Failure::Drifted(_) => 10,
            Failure::Import { .. } | Failure::NothingToImport(_) => 11,
        }
    }
}

/// The exit code of a campaign's error.
fn campaign_code(error: &CampaignError) -> u8 {
    match error {
        CampaignError::System { .. } => 1,
        CampaignError::Study(_) | CampaignError::StudyFile { .. } | CampaignError::Usage(_) => 2,
        CampaignError::Testbed(_) => 3,
        CampaignError::Store(_) => 4,
        CampaignError::Unreachable(_) => 5,
        // Before the first trial nothing was kept, but the exit code is the same: the user has interrupted.
        CampaignError::Interrupted(_) | CampaignError::Agent(AgentError::Interrupted) => 130,
        CampaignError::Agent(_) => 5,
    }
}

/// Errors of a campaign's parts are the campaign's.
macro_rules! of_a_campaign {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                CampaignError::from(error).into()
            }
        })*
    };
}
of_a_campaign!(AgentError, StoreError, StudyErrors, TestbedError);

impl From<ExplainError> for Failure {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Campaign(error) => error.into(),
            error => Failure::Explain(error),
        }
    }
}

fn and_more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and {others} more") }
}
