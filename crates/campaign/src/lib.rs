//! A campaign: the rigs that its trials run on, the trials, the programs that drive them, and the order in which they
//! are measured. What a trial gives is a run; a record of runs becomes findings here too.

mod appearing;
mod blocks;
pub(crate) mod foreign;
pub mod generator;
pub mod lab;
mod live_chart;
pub mod notice;
pub(crate) mod program;
pub mod progress;
pub mod record;
pub mod resumed;
pub mod rig;
pub mod runs;
pub mod schedule;
pub mod single;
pub mod slow_path;
pub mod sources;
pub mod trial;

pub use blocks::measure;
pub use program::Emulators;

use stacklab_model::quote_file;
use stacklab_store::StoreError;
use stacklab_study::StudyErrors;
use stacklab_testbed::TestbedError;
use stacklab_traffic::protocol::AgentError;
use std::io;
use std::path::PathBuf;

/// Everything that ends a campaign early.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A study file is invalid, with the location of the error.
    #[error("the study cannot be run\n\n{0}")]
    Study(#[from] StudyErrors),
    /// The study that a record holds is invalid.
    #[error("this version of stacklab cannot read the study that the record holds\n\n{0}")]
    StudyOfRecord(StudyErrors),
    /// Settings that contradict each other, or names that do not exist.
    #[error("{0}")]
    Usage(String),
    /// The testbed cannot be made.
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    /// A record cannot be used.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A host failed.
    #[error("{0}")]
    Agent(#[from] AgentError),
    /// No agent runs on a machine.
    #[error("{0}")]
    Unreachable(String),
    /// The user interrupted.
    #[error("interrupted; results so far are kept. Resume with: stacklab run --resume --out {}", quote_file(.0))]
    Interrupted(PathBuf),
    /// A step on this machine failed.
    #[error("could not {attempted}: {reason}")]
    System {
        /// The step that failed.
        attempted: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

impl CampaignError {
    /// Whether the user interrupted.
    pub fn is_interruption(&self) -> bool {
        matches!(self, CampaignError::Interrupted(_) | CampaignError::Agent(AgentError::Interrupted))
    }
}

/// This program's file. Testbeds are built and programs watched in each block, and it may have been replaced since the
/// campaign began.
pub fn own_program() -> Result<PathBuf, CampaignError> {
    let attempted = "find this program's executable";
    let file = std::env::current_exe().map_err(|reason| CampaignError::System { attempted, reason })?;
    Ok(choose_own_file(file))
}

/// The file by its path, or by the kernel's link to what this process executes if another file has its place.
fn choose_own_file(file: PathBuf) -> PathBuf {
    if file.exists() { file } else { PathBuf::from("/proc/self/exe") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_replaced_program_is_still_found() {
        let own = own_program().unwrap();
        assert_eq!(own, std::env::current_exe().unwrap());
        let replaced = choose_own_file(PathBuf::from(format!("{} (deleted)", own.display())));
        assert_eq!(fs::canonicalize(replaced).unwrap(), fs::canonicalize(own).unwrap());
    }
}
