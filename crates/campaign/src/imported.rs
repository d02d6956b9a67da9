//! The study of an imported record: what its runs hold. In the record's place of a study's text it has a JSON object,
//! which no study is.

use crate::CampaignError;
use serde::{Deserialize, Serialize};
use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Factor, Family, LinkConfig, Metric, Probe, ProbeSpec, RunRecord,
    SELF_ARMS, StopReason, StoppingRule, Topology, Until, Value, once_each,
};
use stacklab_store::Campaign;
use stacklab_study::Study;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the study of imported records.
pub const NAME: &str = "import";

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
    pub(crate) fn of(campaign: &Campaign) -> Option<Self> {
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

    pub(crate) fn title(&self) -> &str {
        &self.imported.title
    }

    /// The study of these runs, and why its comparisons ended.
    pub(crate) fn study(&self, runs: &[RunRecord]) -> (Study, fn(usize) -> Vec<StopReason>) {
        let Description { title, margin, metrics } = self.imported.clone();
        let own = |run: &&RunRecord| !SELF_ARMS.contains(&run.trial.cell.replica.as_str());
        let cells: Vec<Cell> = once_each(runs.iter().filter(own).map(|run| run.trial.cell.clone()));
        let families: BTreeSet<Family> = cells.iter().map(|cell| cell.family).collect();
        let measured: BTreeSet<Metric> = runs.iter().flat_map(|run| figures(run, &metrics)).collect();
        let compared = measured.into_iter().filter(|metric| metric.is_compared()).collect();
        let comparison = ComparisonSpec {
            factor: Factor::Family,
            baseline: Family::Ipv4.to_string(),
            candidate: Family::Ipv6.to_string(),
            metrics: if metrics.is_empty() { compared } else { metrics.clone() },
            margin,
        };
        let study = Study {
            title,
            // What the network was is not known.
            link_config: LinkConfig { rate: None, mtu: 1500, offloads: true },
            topology: Topology::Link,
            keeps_testbeds: true,
            hosts: Vec::new(),
            cells,
            probes: probes(runs, &metrics),
            schedule: ArmSchedule::Alone,
            rule: StoppingRule { min: 1, max: 1, until: Until::Verdict, target: 1.0, budget_ns: None },
            comparisons: if families.len() > 1 { vec![comparison] } else { Vec::new() },
        };
        // The files are all there is: nothing is to be measured.
        (study, |questions| vec![StopReason::Cap; questions])
    }
}

/// The metrics of which a run has figures: those that its study named, and those asked for here. A record of this
/// program has more, such as the delays of a flood, which mean nothing.
fn figures<'a>(run: &'a RunRecord, asked: &'a [Metric]) -> impl Iterator<Item = Metric> + 'a {
    let measured = run.values.iter().filter(|(_, value)| matches!(value, Value::Measured(_)));
    let named = |metric: &Metric| run.spec.probe.metrics.contains(metric) || asked.contains(metric);
    measured.map(|(metric, _)| *metric).filter(named)
}

/// Each probe, with the metrics of which any of its runs has a figure.
fn probes(runs: &[RunRecord], asked: &[Metric]) -> Vec<ProbeSpec> {
    let mut probes: BTreeMap<Probe, (ProbeSpec, BTreeSet<Metric>)> = BTreeMap::new();
    for run in runs {
        let probe = run.trial.probe;
        let first = || (ProbeSpec { probe, ..run.spec.probe.clone() }, BTreeSet::new());
        probes.entry(probe).or_insert_with(first).1.extend(figures(run, asked));
    }
    probes
        .into_values()
        .map(|(spec, metrics)| ProbeSpec { metrics: metrics.into_iter().collect(), ..spec })
        .collect()
}
