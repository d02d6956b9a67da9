//! From a record to its findings. The study of an imported record is what its runs hold: in the place of a study's text
//! it has a JSON object, which no study is.

use crate::CampaignError;
use crate::resumed::describe_moves;
use crate::runs::{add_reports, read_runs};
use crate::schedule::{Replayed, Schedule};
use crate::sources::StudySource;
use serde::{Deserialize, Serialize};
use stacklab_analysis::findings;
use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Counters, Explanation, Factor, Family, Findings, HostFacts,
    HostReport, LinkConfig, Metric, Probe, ProbeSpec, RunRecord, SELF_ARMS, StopReason, StoppingRule,
    Topology, Uncounted, Until, Value, Why, add_up, once_each,
};
use stacklab_store::{Campaign, Record};
use stacklab_study::{Plan, Study};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

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
pub fn study_of(campaign: &Campaign) -> Result<Study, CampaignError> {
    let source = StudySource { name: campaign.study_name.clone(), text: campaign.study_text.clone() };
    source.check(campaign.scale.as_deref(), &campaign.settings).map_err(|error| match error {
        // Whoever reads a record has not written the study now.
        CampaignError::Study(errors) => CampaignError::StudyOfRecord(errors),
        other => other,
    })
}

/// Of several explanations of the same cells, the last one: a resumed campaign may explain what it could not before.
/// Samples and counts of instructions are taken one after the other, so each lasts until there is another one.
pub fn latest(all: Vec<Explanation>, is_sampled: bool) -> Vec<Explanation> {
    let mut kept: Vec<Explanation> = Vec::new();
    for mut new in all {
        let same = kept.iter().position(|old| old.is_of_same_cells(&new));
        if let Some(old) = same.map(|place| kept.remove(place)) {
            if new.why == Why::NotSampled {
                new.why = old.why;
            }
            new.exact = new.exact.or(old.exact);
            new.programs = new.programs.or(old.programs);
        }
        if !is_sampled && new.has_counts() && matches!(new.why, Why::Unknown(_)) {
            // A machine may have failed before.
            new.why = Why::NotSampled;
        }
        kept.push(new);
    }
    kept
}

/// Whether it is of a pair whose instructions the study asks for, and only says why they were not counted.
fn is_failed_count(study: &Study, explanation: &Explanation) -> bool {
    matches!(explanation.why, Why::Unknown(_))
        && !explanation.has_counts()
        && study.list_counted_pairs().iter().any(|pair| pair.explanation.is_of_same_cells(explanation))
}

/// Whether one of these kinds of hosts is that of a system of the study: `gvisor: release-20260105.0`.
fn names_a_system(kinds: &[String], study: &Study) -> bool {
    for system in study.systems().iter().flat_map(|systems| &systems.0) {
        if kinds.iter().any(|kind| kind.starts_with(system.kind())) {
            return true;
        }
    }
    false
}

/// The parsed contents of a record.
pub struct Recorded {
    /// What was asked for.
    pub request: Campaign,
    /// Its study.
    pub study: Study,
    /// The testbed, and where it was another machine.
    testbed_description: String,
    hosts: Vec<(String, HostFacts)>,
    /// The kind of each host of the campaign, in their order.
    pub kinds: Vec<String>,
    replayed: Replayed,
    runs: Vec<RunRecord>,
    throttled_us: u64,
    explanations: Vec<Explanation>,
    uncounted: Vec<Uncounted>,
}

impl Recorded {
    /// Reads a record, with host reports of the runs of the A/A check and of searches only.
    pub fn read(record: &Record) -> Result<Self, CampaignError> {
        let campaign = record.campaign()?;
        let mut runs = read_runs(record)?;
        // The A/A check compares slices, and those of a search make a table.
        for run in &mut runs {
            let is_own_arm = SELF_ARMS.contains(&&*run.trial.cell.replica);
            if run.trial.probe == Probe::Search || is_own_arm {
                add_reports(record, run)?;
            }
            if !is_own_arm {
                run.host_reports.iter_mut().for_each(keep_search);
            }
        }
        let (study, replayed) = if let Some(imported) = ImportedStudy::of(&campaign) {
            let study = imported.study(&runs);
            let questions = study.questions();
            // The files are all there is: nothing is to be measured.
            let stop_reasons = vec![StopReason::Cap; questions.len()];
            (study, Replayed { settled: Vec::new(), questions, stop_reasons, has_ended: true })
        } else {
            let study = study_of(&campaign)?;
            let plan = Plan::new(&study, campaign.seed);
            let replayed = Schedule::new(&study, &plan).walk(&runs);
            (study, replayed)
        };
        let (mut hosts, mut kinds): (Vec<(String, HostFacts)>, Vec<String>) = (Vec::new(), Vec::new());
        let rows = record.hosts()?;
        let moves = describe_moves(&rows, &runs);
        let said = once(campaign.testbed_description.clone()).chain(moves);
        let testbed_description = said.collect::<Vec<_>>().join("\n");
        for host in rows {
            // A resumed campaign on an unchanged machine has the same facts again, but possibly another boot id.
            let facts = HostFacts { boot_id: None, time_namespace: None, machine_name: None, ..host.facts };
            if !hosts.iter().any(|(name, known)| *name == host.name && *known == facts) {
                hosts.push((host.name, facts));
                kinds.push(host.kind);
            }
        }
        let is_sampled = campaign.sample_period_ns.is_some();
        let mut explanations = latest(record.explanations()?, is_sampled);
        let uncounted = list_missing_counts(&study, &explanations, is_sampled);
        explanations.retain(|one| is_sampled || !is_failed_count(&study, one));
        let has_quota = hosts.iter().any(|(_, facts)| facts.cpu_quota.is_some());
        let throttled_us = if has_quota { sum_throttled_us(record, &runs)? } else { 0 };
        Ok(Recorded {
            request: campaign,
            study,
            testbed_description,
            hosts,
            kinds,
            replayed,
            runs,
            throttled_us,
            explanations,
            uncounted,
        })
    }

    /// Whether `run --resume` can continue it: not an import, nothing that was sampled, and no comparison of `measure`
    /// or of a fleet, whose hosts are others than the study's.
    fn is_resumable(&self) -> bool {
        if self.request.sample_period_ns.is_some() || ImportedStudy::of(&self.request).is_some() {
            return false;
        }
        self.study.topology != Topology::Link || names_a_system(&self.kinds, &self.study)
    }

    /// Title of a campaign's study, if this version understands it.
    pub fn title(campaign: &Campaign) -> Option<String> {
        if let Some(imported) = ImportedStudy::of(campaign) {
            return Some(imported.imported.title);
        }
        Some(study_of(campaign).ok()?.title)
    }

    /// The campaign, in the form that the analysis takes.
    pub fn campaign(&self) -> stacklab_analysis::RecordedCampaign<'_> {
        stacklab_analysis::RecordedCampaign {
            title: &self.study.title,
            version: &self.request.program_version,
            started_unix_ns: self.request.created_unix_ns,
            seed: self.request.seed,
            link_config: &self.study.link_config,
            topology: &self.study.topology,
            testbed_description: &self.testbed_description,
            hosts: &self.hosts,
            cpu_scope: self.request.cpu_scope,
            cells: &self.study.cells,
            probes: &self.study.probes,
            rule: &self.study.rule,
            questions: &self.replayed.questions,
            stop_reasons: &self.replayed.stop_reasons,
            settled: &self.replayed.settled,
            runs: &self.runs,
            throttled_us: self.throttled_us,
            is_sampled: self.request.sample_period_ns.is_some(),
            is_resumable: self.is_resumable(),
            explanations: &self.explanations,
            uncounted: &self.uncounted,
        }
    }
}

/// The pairs of cells without a count of instructions that a study asks for, by the reason.
fn list_missing_counts(study: &Study, known: &[Explanation], is_sampled: bool) -> Vec<Uncounted> {
    let mut all: Vec<Uncounted> = Vec::new();
    for pair in study.list_counted_pairs() {
        let same = known.iter().find(|one| one.is_of_same_cells(&pair.explanation));
        if same.is_some_and(Explanation::has_counts) {
            continue;
        }
        let reason = pair.way.err();
        let failure = match same.map(|one| &one.why) {
            Some(Why::Unknown(failure)) if !is_sampled && reason.is_none() => Some(failure.clone()),
            _ => None,
        };
        match all.iter_mut().find(|one| (&one.reason, &one.failure) == (&reason, &failure)) {
            Some(one) => one.pairs += 1,
            None => all.push(Uncounted { pairs: 1, reason, failure }),
        }
    }
    all
}

/// Of a report, only the slices of a search: the others of a long campaign need too much memory.
fn keep_search(report: &mut HostReport) {
    let search = std::mem::take(&mut report.search);
    *report = HostReport { search, ..HostReport::new(report.role, report.endpoint.clone()) };
}

/// For how long CPU quotas kept the hosts from running in all trials, microseconds. Hosts in one container have the
/// same time, and so have the arms of an interleaved trial, which have one start: it counts once.
fn sum_throttled_us(record: &Record, runs: &[RunRecord]) -> Result<u64, CampaignError> {
    let mut trials: BTreeMap<u64, u64> = BTreeMap::new();
    for run in runs {
        let reports = record.host_reports(&run.trial)?;
        let most = reports.iter().map(|report| report.counters.get(Counters::THROTTLED_US)).max();
        let trial = trials.entry(run.started_unix_ns).or_default();
        *trial = most.unwrap_or(0).max(*trial);
    }
    Ok(add_up(trials.into_values()))
}

/// Name of the study of imported records.
pub const IMPORTED: &str = "import";

/// The text in place of a study's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedStudy {
    imported: Description,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Description {
    title: String,
    margin: f64,
    /// What is compared; if empty, all that the runs' study named, or that another tool measured.
    metrics: Vec<Metric>,
}

impl ImportedStudy {
    /// A study of this title, whose comparisons are by these metrics, or all, and have this margin, as a ratio.
    pub fn new(title: String, margin: f64, metrics: Vec<Metric>) -> Self {
        ImportedStudy { imported: Description { title, margin, metrics } }
    }

    /// As the record has it.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers have no failing serialisers")
    }

    /// That of a campaign, if it was imported.
    fn of(campaign: &Campaign) -> Option<Self> {
        let study: Self = serde_json::from_str(&campaign.study_text).ok()?;
        (study.imported.margin > 0.0 && study.imported.margin < 1.0).then_some(study)
    }

    /// Refuses to resume an imported campaign.
    pub fn refuse(campaign: &Campaign, what: &str) -> Result<(), CampaignError> {
        match ImportedStudy::of(campaign) {
            Some(_) => Err(CampaignError::Usage(format!(
                "{what} was imported, and has no study: it can be reported and compared"
            ))),
            None => Ok(()),
        }
    }

    fn study(&self, runs: &[RunRecord]) -> Study {
        let Description { title, margin, metrics } = self.imported.clone();
        let own = runs.iter().filter(|run| !SELF_ARMS.contains(&run.trial.cell.replica.as_str()));
        let cells: Vec<Cell> = once_each(own.map(|run| run.trial.cell.clone()));
        let families: BTreeSet<Family> = cells.iter().map(|cell| cell.family).collect();
        let measured: BTreeSet<Metric> = runs.iter().flat_map(|run| figures(run, &metrics)).collect();
        let compared = measured.into_iter().filter(|metric| metric.allows_comparison()).collect();
        let comparison = ComparisonSpec {
            factor: Factor::Family,
            baseline: Family::Ipv4.to_string(),
            candidate: Family::Ipv6.to_string(),
            metrics: if metrics.is_empty() { compared } else { metrics.clone() },
            margin,
            instructions: false,
        };
        Study {
            title,
            // What the network was is not known.
            link_config: LinkConfig { rate: None, mtu: 1500, offloads: true },
            topology: Topology::Link,
            keeps_testbeds: true,
            hosts: Vec::new(),
            programs: Vec::new(),
            cells,
            probes: probes(runs, &metrics),
            schedule: ArmSchedule::Alone,
            rule: StoppingRule { min: 1, max: 1, until: Until::Verdict, target: 1.0, budget_ns: None },
            comparisons: if families.len() > 1 { vec![comparison] } else { Vec::new() },
        }
    }
}

/// The metrics of which a run has figures: those that its study named, and those asked for here. A record of this
/// program has more, such as the delays of a flood, which mean nothing.
fn figures<'a>(run: &'a RunRecord, asked: &'a [Metric]) -> impl Iterator<Item = Metric> + 'a {
    let measured = run.values.iter().filter(|(_, value)| matches!(value, Value::Measured(_)));
    let metrics = measured.map(|(metric, _)| *metric);
    metrics.filter(|metric| run.spec.probe.metrics.contains(metric) || asked.contains(metric))
}

/// Each probe, with the metrics of which any of its runs has a figure.
fn probes(runs: &[RunRecord], asked: &[Metric]) -> Vec<ProbeSpec> {
    let mut probes: BTreeMap<Probe, (ProbeSpec, BTreeSet<Metric>)> = BTreeMap::new();
    for run in runs {
        let probe = run.trial.probe;
        let (_, metrics) = probes
            .entry(probe)
            .or_insert_with(|| (ProbeSpec { probe, ..(*run.spec.probe).clone() }, BTreeSet::new()));
        metrics.extend(figures(run, asked));
    }
    probes
        .into_values()
        .map(|(spec, metrics)| ProbeSpec { metrics: metrics.into_iter().collect(), ..spec })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::ExactCounts;
    use std::path::Path;

    fn explain(why: Why, exact: Option<&str>) -> Explanation {
        let study = StudySource::read(Some(Path::new("quickstart"))).unwrap().check(None, &[]).unwrap();
        let [baseline, candidate] = [&study.cells[0], &study.cells[1]].map(Cell::clone);
        let exact = exact.map(|qemu| ExactCounts { qemu: qemu.into(), kernel: String::new(), cells: vec![] });
        let pair = Explanation::of_cells(Probe::Stream, Factor::Family, baseline, candidate);
        Explanation { why, exact: exact.map(Box::new), ..pair }
    }

    #[test]
    fn counts_and_samples_of_one_pair_are_joined() {
        let unknown = Why::Unknown("no time".to_owned());
        let counted = explain(Why::NotSampled, Some("7"));
        let sampled = explain(unknown.clone(), None);
        let both = explain(unknown.clone(), Some("7"));
        assert_eq!(latest(vec![counted.clone(), sampled.clone()], true), vec![both.clone()]);
        assert_eq!(latest(vec![sampled.clone(), counted.clone()], true), vec![both.clone()]);
        // Without samples, the reason is that of a machine which failed before another counted.
        assert_eq!(latest(vec![sampled.clone(), counted.clone()], false), vec![counted]);
        // What is newer stands in the place of what is older.
        let again = explain(Why::NotSampled, Some("9"));
        assert_eq!(latest(vec![both, again], true), [explain(unknown, Some("9"))]);
        let other = Explanation { probe: Probe::Echo, ..sampled.clone() };
        assert_eq!(latest(vec![sampled, other], true).len(), 2);
    }

    #[test]
    fn uncounted_pairs_have_the_reason_of_a_failure() {
        let comparison = "{factor='family', baseline='ipv4', candidate='ipv6', instructions=true}";
        let instructions = [format!("comparison=[{comparison}]")];
        let source = StudySource::read(Some(Path::new("quickstart"))).unwrap();
        let study = source.check(None, &instructions).unwrap();
        let pairs = study.list_counted_pairs();
        let mut failed = pairs[0].explanation.clone();
        failed.why = Why::Unknown("it hangs".to_owned());
        assert!(is_failed_count(&study, &failed));
        // Samples of a campaign that counts nothing may lack a reason, too.
        assert!(!is_failed_count(&source.check(None, &[]).unwrap(), &failed));
        let found = list_missing_counts(&study, &[failed.clone()], false);
        assert!(found.contains(&Uncounted { pairs: 1, reason: None, failure: Some("it hangs".to_owned()) }));
        assert_eq!(found.iter().map(|one| one.pairs).sum::<usize>(), pairs.len());
        // The reason of a sampled campaign is not that of a machine.
        let sampled = list_missing_counts(&study, &[failed], true);
        assert!(sampled.iter().all(|one| one.failure.is_none()));
    }

    #[test]
    fn hosts_of_a_run_are_those_of_its_study() {
        let study = StudySource::read(Some(Path::new("quickstart"))).unwrap().check(None, &[]).unwrap();
        let cases = [
            (["namespace", "namespace: nginx 1.26"], true),
            // Those of `measure`, and of a fleet.
            (["this host", "lab.example"], false),
            (["berlin", "paris"], false),
        ];
        for (kinds, is_run) in cases {
            assert_eq!(names_a_system(&kinds.map(str::to_owned), &study), is_run, "{kinds:?}");
        }
    }
}
