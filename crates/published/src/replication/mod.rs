//! Replication: tests a published study's findings on a record of this machine.
//!
//! * `arms`: which cells of the record represent a finding's two arms, or why none do
//! * `judge`: the runs of a finding's parts
//! * `verdict`: the rule that judges them
//! * `fragments`: messages that do not fit a packet
//! * `published`: the published figures for the same arms
//! * `precision`: how many runs the study's precision took
//! * `text`: the output as text

mod arms;
mod fragments;
mod judge;
mod precision;
mod published;
pub mod text;
mod verdict;

pub use published::name as published_name;

use crate::{Limit, Reference, StudyName};
use fragments::FragmentedCell;
use judge::Judged;
use precision::{Answers, Precision};
use serde::Serialize;
use stacklab_analysis::Runs;
use stacklab_campaign::CampaignError;
use stacklab_campaign::imported::ImportedStudy;
use stacklab_campaign::record::study_of;
use stacklab_report::versioned_json;
use stacklab_store::Record;

/// The results of a record for a published study.
#[derive(Debug, Serialize)]
pub struct Replication {
    pub(crate) study: &'static str,
    pub(crate) measured: String,
    pub(crate) testbed: String,
    /// The kernel that replaces the study's systems.
    pub(crate) stand_in: String,
    /// Number of valid runs.
    pub runs: usize,
    /// Total duration of all runs, minutes.
    pub(crate) minutes: f64,
    pub(crate) findings: Vec<Judged>,
    /// Results for messages that do not fit a packet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cuts: Vec<FragmentedCell>,
    /// Number of runs that the answers took, compared with the study's.
    pub(crate) answers: Option<Answers>,
    /// Number of runs that the study's precision took, if it states one.
    pub(crate) precision: Option<Precision>,
    /// Parts of the study that are not replicated here.
    pub(crate) limits: Vec<Limit>,
}

/// Format version (the field `format`): raised when a field is removed or changes its meaning.
const FORMAT_VERSION: u32 = 2;

impl Replication {
    /// Pretty-printed JSON, with one newline at the end.
    pub fn json(&self) -> String {
        versioned_json(FORMAT_VERSION, self)
    }
}

/// Tests every finding of a study on a record.
pub fn replicate(
    study: &'static StudyName,
    all: &Reference,
    record: &Record,
) -> Result<Replication, CampaignError> {
    let own = all.of(study.name);
    let campaign = record.campaign()?;
    ImportedStudy::refuse(&campaign, "this record")?;
    let records = record.runs()?;
    let plan = study_of(&campaign)?;
    let runs = Runs::new(&records);
    let host = record.hosts()?.into_iter().next();
    Ok(Replication {
        study: study.name,
        measured: plan.title.clone(),
        testbed: campaign.testbed_description,
        stand_in: host.map_or_else(
            || "an unknown kernel".to_owned(),
            |host| format!("{} {}", host.facts.os, host.facts.kernel),
        ),
        runs: records.iter().filter(|run| run.is_valid()).count(),
        minutes: records.iter().map(|run| run.wall_ns as f64).sum::<f64>() / 60e9,
        findings: own.findings.iter().map(|finding| judge::judge(finding, &own, &plan, &runs)).collect(),
        cuts: fragments::cuts(&plan, &records, record)?,
        answers: precision::answers(study, &plan, campaign.seed, &records),
        precision: precision::precision(study, &own.figures, &plan, &records),
        limits: own.limits,
    })
}
