//! One of the transfers of a trial.

use crate::path::Path;
use stacklab_model::TrialSpec;

/// One direction of a trial: one sender, one receiver, one or more flows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transfer {
    pub role: TransferRole,
    pub from: usize,
    /// The path, sender first.
    pub path: Path,
    pub spec: TrialSpec,
}

/// The role of a transfer in its trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferRole {
    Main,
    Reverse,
    Load,
}

impl Transfer {
    pub(crate) fn to(&self) -> usize {
        1 - self.from
    }

    pub(crate) fn prefix(&self) -> &'static str {
        match self.role {
            TransferRole::Main => "",
            TransferRole::Reverse => "in the other direction, ",
            TransferRole::Load => "of the stream beside, ",
        }
    }
}
