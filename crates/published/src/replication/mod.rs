//! Replication: tests a published study's findings on a record of this machine.
//!
//! * `arms`: which cells of the record represent a finding's two arms, or why none do
//! * `blocks`: what both arms gave in each block
//! * `judge`: the data of a finding's parts, and the published figures for the same arms
//! * `verdict`: the rule that judges them
//! * `counts`: how many runs the study's precision took, and how many fragments messages became
//! * `text`: the output as text

mod arms;
mod blocks;
mod counts;
mod judge;
mod text;
mod verdict;

pub use judge::published_name;
pub use text::{limits, render};

use crate::tables::Limit;
use crate::{Reference, StudyName};
use counts::{Answers, FragmentedCell, Precision};
use judge::Judged;
use serde::Serialize;
use stacklab_analysis::Runs;
use stacklab_campaign::CampaignError;
use stacklab_campaign::record::{ImportedStudy, study_of};
use stacklab_campaign::runs::read_runs;
use stacklab_report::versioned_json;
use stacklab_store::Record;

/// The results of a record for a published study.
#[derive(Debug, Serialize)]
pub struct Replication {
    study: &'static str,
    measured: String,
    testbed: String,
    /// The kernel that replaces the study's systems.
    stand_in: String,
    /// Number of valid runs.
    pub runs: usize,
    minutes: f64,
    findings: Vec<Judged>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<FragmentedCell>,
    answers: Option<Answers>,
    precision: Option<Precision>,
    limits: Vec<Limit>,
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
    let records = read_runs(record)?;
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
        cuts: counts::cuts(&plan, &records, record)?,
        answers: counts::answers(study, &plan, campaign.seed, &records),
        precision: counts::precision(study, &own.figures, &plan, &records),
        limits: own.limits,
    })
}
