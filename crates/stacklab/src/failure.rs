//! Why a command ended early, with its exit code; `stacklab --help` lists the codes.

use stacklab_agent::client::ReachError;
use stacklab_campaign::CampaignError;
use stacklab_explain::ExplainError;
use stacklab_guests::kernel::BuildError;
use stacklab_serve::ServeError;
use stacklab_store::StoreError;
use stacklab_study::StudyErrors;
use stacklab_testbed::TestbedError;
use stacklab_traffic::protocol::AgentError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub(crate) const OTHER: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const TESTBED: u8 = 3;
pub(crate) const RECORD: u8 = 4;
pub(crate) const UNREACHABLE: u8 = 5;
pub(crate) const NO_DATA: u8 = 6;
pub(crate) const INVALID_RUN: u8 = 7;
pub(crate) const WORSE: u8 = 8;
pub(crate) const FAMILY_FAILS: u8 = 9;
pub(crate) const DRIFTED: u8 = 10;
pub(crate) const IMPORT: u8 = 11;
pub(crate) const NOT_COMPARABLE: u8 = 12;
pub(crate) const INTERRUPTED: u8 = 130;

#[derive(Debug)]
pub(crate) struct Failure {
    pub code: u8,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: u8, reason: impl Display) -> Self {
        Failure { code, text: reason.to_string() }
    }

    pub(crate) fn with_code(self, code: u8) -> Self {
        Failure { code, ..self }
    }

    /// Conflicting options, or names that do not exist.
    pub(crate) fn usage(reason: impl Display) -> Self {
        Self::new(USAGE, reason)
    }

    /// No agent, server or reflector serves at the other end.
    pub(crate) fn unreachable(reason: impl Display) -> Self {
        Self::new(UNREACHABLE, reason)
    }

    /// A step on this machine failed.
    pub(crate) fn step<'a>(attempted: impl Display + 'a) -> impl FnOnce(io::Error) -> Self + 'a {
        move |reason| Self::new(OTHER, format!("could not {attempted}: {reason}"))
    }

    pub(crate) fn nothing_valid() -> Self {
        Self::new(NO_DATA, "no run was valid: nothing can be compared (the reasons are in the report above)")
    }

    /// A single measurement whose observations contradict the request.
    pub(crate) fn invalid_run() -> Self {
        Self::new(INVALID_RUN, "the measurement is not valid (the reasons are in its output)")
    }

    /// The end of a campaign that can be resumed by this command.
    pub(crate) fn resumable(error: CampaignError, command: &str) -> Self {
        let is_interruption = error.is_interruption();
        let is_full = matches!(error, CampaignError::Store(StoreError::Full(_)));
        let mut failure = Self::from(error);
        if is_interruption {
            failure.text = "interrupted".to_owned();
        }
        if is_interruption || is_full || matches!(failure.code, TESTBED | UNREACHABLE) {
            failure.text += &format!("; results so far are kept. Resume with: {command}");
        }
        failure
    }

    /// The same with the file that it is about, unless the reason names it.
    pub(crate) fn of_file(mut self, file: &Path) -> Self {
        if !self.names(file) {
            self.text = format!("{}: {}", file.display(), self.text);
        }
        self
    }

    /// Whether the reason names this file.
    pub(crate) fn names(&self, file: &Path) -> bool {
        self.text.contains(&file.display().to_string())
    }

    /// The reason for a terminal: what files and other hosts said has no control characters.
    pub(crate) fn printable_reason(&self) -> String {
        stacklab_model::printable_lines(&self.text)
    }
}

pub(crate) fn interrupt_flag() -> Result<&'static AtomicBool, Failure> {
    let flag = stacklab_agent::interrupt_flag().map_err(Failure::step("install signal handlers"))?;
    stacklab_guests::interrupt_by(flag);
    Ok(flag)
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        let code = match error {
            // Before the first trial nothing was kept, but the exit code is the same: the user has interrupted.
            _ if error.is_interruption() => INTERRUPTED,
            CampaignError::Study(_) | CampaignError::Usage(_) => USAGE,
            CampaignError::Testbed(_) => TESTBED,
            CampaignError::Store(_) | CampaignError::StudyOfRecord(_) => RECORD,
            CampaignError::Unreachable(_) | CampaignError::Agent(_) => UNREACHABLE,
            CampaignError::System { .. } | CampaignError::Interrupted(_) => OTHER,
        };
        Self::new(code, error)
    }
}

impl From<ExplainError> for Failure {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Campaign(error) => error.into(),
            ExplainError::Study(_) => Self::usage(error),
            ExplainError::Program(_) => Self::new(NO_DATA, error),
            ExplainError::Folder(_) => Self::new(OTHER, error),
            ExplainError::Interrupted | ExplainError::Build(BuildError::Interrupted) => {
                Self::new(INTERRUPTED, error)
            }
            _ => Self::new(TESTBED, error),
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Campaign(error) => error.into(),
            ServeError::Fleet(error) => error.into(),
            ServeError::Usage(_) => Self::usage(error),
            _ => Self::new(OTHER, error),
        }
    }
}

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        match error {
            ReachError::Usage(_) => Self::usage(error),
            ReachError::Unreachable(_) => Self::unreachable(error),
            ReachError::Agent(error) => error.into(),
        }
    }
}

/// Errors that become one of the others first.
macro_rules! through {
    ($($error:ty: $by:expr;)+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                $by(error).into()
            }
        })+
    };
}
through! {
    AgentError: CampaignError::Agent;
    StoreError: CampaignError::Store;
    StudyErrors: CampaignError::Study;
    TestbedError: CampaignError::Testbed;
    stacklab_published::ReferenceError: other;
    stacklab_report::page::NoPage: other;
}

fn other(error: impl Display) -> Failure {
    Failure::new(OTHER, error)
}
