//! From a record to its findings.

use crate::course::Course;
use crate::failure::Failure;
use crate::sources::StudySource;
use stacklab_analysis::{Campaign, findings};
use stacklab_model::Findings;
use stacklab_store::Record;
use stacklab_study::Plan;

/// Everything that a report says of a record, and nothing from anywhere else.
///
/// # Errors
/// When the record cannot be read, or its study is not understood by this version.
pub fn conclude(record: &Record) -> Result<Findings, Failure> {
    let campaign = record.campaign()?;
    let source = StudySource { name: campaign.study_name, text: campaign.study_text };
    let study = source.check(campaign.scale.as_deref(), &campaign.settings)?;
    let plan = Plan::new(&study, campaign.seed);
    let runs = record.runs()?;
    let (questions, settled) = Course::new(&study, &plan).walk(&runs);
    let mut hosts: Vec<(String, _)> = Vec::new();
    for host in record.hosts()? {
        // A resumed campaign on an unchanged machine has the same facts again, though perhaps after another boot.
        let facts = stacklab_model::HostFacts { boot_id: None, ..host.facts };
        if !hosts.iter().any(|(name, known)| *name == host.name && *known == facts) {
            hosts.push((host.name, facts));
        }
    }
    Ok(findings(&Campaign {
        title: &study.title,
        version: &campaign.program_version,
        started_unix_ns: campaign.created_unix_ns,
        seed: campaign.seed,
        bed: &study.bed,
        bed_sentence: &campaign.bed,
        hosts: &hosts,
        cpu_scope: campaign.cpu_scope,
        cells: &study.cells,
        probes: &study.probes,
        questions: &questions,
        settled: &settled,
        runs: &runs,
    }))
}
