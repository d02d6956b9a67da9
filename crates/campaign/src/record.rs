//! From a record to its findings.

use crate::CampaignError;
use crate::imported::ImportedStudy;
use crate::schedule::{Replayed, Schedule};
use crate::sources::StudySource;
use stacklab_analysis::{Campaign, findings};
use stacklab_model::{Explanation, Findings, HostFacts, RunRecord, SELF_ARMS};
use stacklab_store::Record;
use stacklab_study::{Plan, Study};

/// The findings of a record. A report uses nothing else.
pub fn conclude(record: &Record) -> Result<Findings, CampaignError> {
    Ok(findings(&Recorded::read(record)?.campaign()))
}

/// Whether a record has a whole block: with less there is nothing to compare.
pub fn has_a_block(record: &Record) -> Result<bool, CampaignError> {
    let campaign = record.campaign()?;
    let study = study_of(&campaign)?;
    Ok(record.run_count()? >= Plan::new(&study, campaign.seed).trials_per_block())
}

/// The study of a campaign.
pub fn study_of(campaign: &stacklab_store::Campaign) -> Result<Study, CampaignError> {
    let source = StudySource { name: campaign.study_name.clone(), text: campaign.study_text.clone() };
    source.check(campaign.scale.as_deref(), &campaign.settings)
}

/// Of several explanations of the same cells, the last one: a resumed campaign may explain what it could not before.
pub fn latest(all: Vec<Explanation>) -> Vec<Explanation> {
    let mut kept: Vec<Explanation> = Vec::new();
    for new in all {
        let is_same = |old: &Explanation| {
            (old.probe, old.factor, &old.baseline, &old.candidate)
                == (new.probe, new.factor, &new.baseline, &new.candidate)
        };
        kept.retain(|old| !is_same(old));
        kept.push(new);
    }
    kept
}

/// The parsed contents of a record.
pub struct Recorded {
    campaign: stacklab_store::Campaign,
    study: Study,
    hosts: Vec<(String, HostFacts)>,
    kinds: Vec<String>,
    replayed: Replayed,
    runs: Vec<RunRecord>,
    explanations: Vec<Explanation>,
}

impl Recorded {
    /// Reads a record, with host reports of the runs of the A/A check only.
    pub fn read(record: &Record) -> Result<Self, CampaignError> {
        let campaign = record.campaign()?;
        let mut runs = record.runs()?;
        // The A/A check compares slices.
        for run in runs.iter_mut().filter(|run| SELF_ARMS.contains(&&*run.trial.cell.replica)) {
            run.host_reports = record.host_reports(&run.trial)?;
        }
        let (study, replayed) = if let Some(imported) = ImportedStudy::of(&campaign) {
            let (study, stop_reasons) = imported.study(&runs);
            let questions = study.questions();
            let stop_reasons = stop_reasons(questions.len());
            (study, Replayed { settled: Vec::new(), questions, stop_reasons })
        } else {
            let study = study_of(&campaign)?;
            let plan = Plan::new(&study, campaign.seed);
            let replayed = Schedule::new(&study, &plan).walk(&runs);
            (study, replayed)
        };
        let (mut hosts, mut kinds): (Vec<(String, HostFacts)>, Vec<String>) = (Vec::new(), Vec::new());
        for host in record.hosts()? {
            // A resumed campaign on an unchanged machine has the same facts again, but possibly another boot id.
            let facts = HostFacts { boot_id: None, time_namespace: None, ..host.facts };
            if !hosts.iter().any(|(name, known)| *name == host.name && *known == facts) {
                hosts.push((host.name, facts));
                kinds.push(host.kind);
            }
        }
        let explanations = latest(record.explanations()?);
        Ok(Recorded { campaign, study, hosts, kinds, replayed, runs, explanations })
    }

    /// Title of a campaign's study, if this version understands it.
    pub fn title(campaign: &stacklab_store::Campaign) -> Option<String> {
        if let Some(imported) = ImportedStudy::of(campaign) {
            return Some(imported.title().to_owned());
        }
        Some(study_of(campaign).ok()?.title)
    }

    /// Name of the study's file.
    pub fn study_name(&self) -> &str {
        &self.campaign.study_name
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The kind of each host of the campaign, in their order.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// The campaign, in the form that the analysis takes.
    pub fn campaign(&self) -> Campaign<'_> {
        Campaign {
            title: &self.study.title,
            version: &self.campaign.program_version,
            started_unix_ns: self.campaign.created_unix_ns,
            seed: self.campaign.seed,
            link_config: &self.study.link_config,
            topology: &self.study.topology,
            testbed_description: &self.campaign.testbed_description,
            hosts: &self.hosts,
            cpu_scope: self.campaign.cpu_scope,
            cells: &self.study.cells,
            probes: &self.study.probes,
            questions: &self.replayed.questions,
            stop_reasons: &self.replayed.stop_reasons,
            settled: &self.replayed.settled,
            runs: &self.runs,
            is_sampled: self.campaign.sample_period_ns.is_some(),
            explanations: &self.explanations,
        }
    }
}
