//! A published study's findings, tested on a record of this machine.
//!
//! * `arms`: which cells of the record stand for a finding's two arms, or why none do
//! * `judge`: what the runs say of a finding
//! * `fragments`: what becomes of messages that do not fit a packet
//! * `published`: the study's own figures for the same arms
//! * `precision`: how many runs the study's precision took
//! * `text`, `json`: the output formats

mod arms;
mod fragments;
pub mod json;
mod judge;
mod precision;
mod published;
pub mod text;

pub use published::name as published_name;

use crate::campaign::sources::StudySource;
use crate::failure::Failure;
use fragments::FragmentedCell;
use judge::Judged;
use precision::{Answers, Precision};
use serde::Serialize;
use stacklab_analysis::Runs;
use stacklab_reference::{Limit, Reference, StudyName};
use stacklab_store::Record;

/// What a record says of a published study.
#[derive(Debug, Serialize)]
pub struct Replication {
    /// The study.
    pub study: &'static str,
    /// Title of what was measured in its place.
    pub measured: String,
    /// The testbed in a sentence.
    pub testbed: String,
    /// The kernel that stands in for the study's systems.
    pub stand_in: String,
    /// Valid runs.
    pub runs: usize,
    /// Minutes that all runs took.
    pub minutes: f64,
    /// Every finding of the study.
    pub findings: Vec<Judged>,
    /// What became of messages that do not fit a packet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<FragmentedCell>,
    /// How many runs the answers took, against the study's.
    pub answers: Option<Answers>,
    /// How many runs the study's precision took, where it states one.
    pub precision: Option<Precision>,
    /// What is not here.
    #[serde(skip)]
    pub limits: Vec<Limit>,
}

/// Tests every finding of a study on a record.
///
/// # Errors
/// When the record cannot be read.
pub fn replicate(
    study: &'static StudyName,
    all: &Reference,
    record: &Record,
) -> Result<Replication, Failure> {
    let own = all.of(study.name);
    let campaign = record.campaign()?;
    let source = StudySource { name: campaign.study_name, text: campaign.study_text };
    let plan = source.check(campaign.scale.as_deref(), &campaign.settings)?;
    let records = record.runs()?;
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
        minutes: records.iter().map(|run| run.wall_ns).sum::<u64>() as f64 / 60e9,
        findings: own.findings.iter().map(|finding| judge::judge(finding, &own, &plan, &runs)).collect(),
        cuts: fragments::cuts(&plan, &records, record)?,
        answers: precision::answers(study, &plan, campaign.seed, &records),
        precision: precision::precision(study, &own.figures, &plan, &records),
        limits: own.limits,
    })
}
