//! The instructions of the cells whose comparisons ask for them: counted when a campaign has been measured.

use crate::commands::study::PlacementOptions;
use crate::failure::{Failure, interrupt_flag};
use stacklab_campaign::notice::note;
use stacklab_campaign::record::study_of;
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_campaign::{CampaignError, own_program};
use stacklab_explain::{
    ExplainError, KERNEL, USER_EMULATOR, count_campaign, count_programs_of_campaign, list_missing_counts,
};
use stacklab_model::count;
use stacklab_store::Record;
use stacklab_traffic::protocol::AgentError;

/// Counts what is missing. A machine that cannot count says so, and the campaign is complete without.
pub(super) fn count_instructions(
    record: &mut Record,
    placement: &PlacementOptions,
    resume: &str,
) -> Result<(), Failure> {
    let study = study_of(&record.campaign()?)?;
    let missing = list_missing_counts(record, &study)?;
    if missing.is_empty() {
        return Ok(());
    }
    let pairs = count(missing.len(), "pair");
    let interrupted = interrupt_flag()?;
    let counted = if study.programs.is_empty() {
        note(&format!(
            "stacklab: counting the instructions of {pairs} of cells in emulated machines ({KERNEL})"
        ));
        let program = own_program()?;
        count_campaign(record, missing, &program, &mut show_progress, interrupted)
    } else {
        note(&format!("stacklab: counting the instructions of {pairs} of cells under {USER_EMULATOR}"));
        let routed = RoutedPlacement::of(&study, &placement.in_vm)?;
        count_programs_of_campaign(record, &study, missing, routed, &mut show_progress, interrupted)
    };
    match counted {
        Ok(()) => Ok(()),
        Err(ExplainError::Interrupted) => {
            Err(Failure::resumable(CampaignError::Agent(AgentError::Interrupted), resume))
        }
        Err(ExplainError::Campaign(error)) if error.is_interruption() => {
            Err(Failure::resumable(error, resume))
        }
        Err(ExplainError::Campaign(error @ CampaignError::Store(_))) => {
            Err(Failure::resumable(error, resume))
        }
        Err(reason) => {
            note(&format!(
                "stacklab: warning: instructions were not counted: {reason}; to try again: {resume}"
            ));
            Ok(())
        }
    }
}

fn show_progress(what: &str) {
    note(&format!("stacklab: counting instructions: {what}"));
}
