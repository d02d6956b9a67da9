//! Two campaigns compared, without pairs.
//!
//! Blocks of different campaigns are not paired: the runs are two independent samples. Intervals cover the spread
//! within each campaign only, not what changes on a machine from one day to the next.

pub(crate) mod load;
pub(crate) mod unpaired;

use crate::findings::RecordedCampaign;
use crate::records::load::record_loads;
use crate::records::unpaired::{against, judge};
use crate::runs::Runs;
use stacklab_model::{
    Apart, Cell, Change, HostFacts, Metric, OnlyInOne, Probe, ProbeSpec, RecordDiff, RecordFacts,
    RecordLoads, Scale, once_each, print_duration,
};

/// The margin of metrics on the ratio scale if the first campaign's study states none.
const MARGIN: f64 = 0.02;

/// Two campaigns without a common figure: no common cell, or no common metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingInCommon {
    /// No cell is in both.
    Cells,
    /// Some cells are in both, but no metric of them.
    Metrics,
}

/// Compares every metric of every cell that both campaigns contain; if `metrics` names any, only those. `names` are
/// the records' names, as printed. `allowed` is by how much the second campaign may be worse (0.05 is 5 %): no figure
/// fails for being worse if other load disturbed the runs of one record only.
pub fn between(
    [a, b]: [&RecordedCampaign; 2],
    names: [&str; 2],
    metrics: &[Metric],
    allowed: Option<f64>,
) -> Result<RecordDiff, NothingInCommon> {
    let [metrics_a, metrics_b] = [a, b].map(|campaign| list_metrics(campaign, metrics));
    let shared: Vec<Metric> = metrics_a.iter().filter(|metric| metrics_b.contains(metric)).copied().collect();
    let cells: Vec<&Cell> = a.cells.iter().filter(|cell| b.cells.contains(cell)).collect();
    if cells.is_empty() {
        return Err(NothingInCommon::Cells);
    }
    let [runs_a, runs_b] = [a, b].map(|campaign| Runs::new(campaign.runs));
    let mut figures = Vec::new();
    for cell in &cells {
        for metric in shared.iter().filter(|metric| metric.is_of_cell(cell)) {
            let runs = [runs_a.of(cell, *metric), runs_b.of(cell, *metric)];
            let unlike = describe_unlike(*metric, [a, b]);
            figures.push(against((*cell).clone(), *metric, runs, margin_of(a, *metric), unlike, allowed));
        }
    }
    if figures.is_empty() {
        return Err(NothingInCommon::Metrics);
    }
    judge(&mut figures, allowed);
    let loads = record_loads([a, b]);
    if loads.warning().is_some() {
        for figure in figures.iter_mut().filter(|figure| figure.change == Change::Worse) {
            figure.fails = false;
        }
    }
    Ok(RecordDiff {
        a: describe_record(a, names[0]),
        b: describe_record(b, names[1]),
        differences: differences(a, b, &loads),
        only_a: list_rest(a, b, &metrics_a, &shared),
        only_b: list_rest(b, a, &metrics_b, &shared),
        allowed,
        figures,
    })
}

/// What a campaign has and the other one has not.
fn list_rest(
    campaign: &RecordedCampaign,
    other: &RecordedCampaign,
    metrics: &[Metric],
    shared: &[Metric],
) -> OnlyInOne {
    OnlyInOne {
        cells: campaign.cells.iter().filter(|cell| !other.cells.contains(cell)).cloned().collect(),
        metrics: metrics.iter().filter(|metric| !shared.contains(metric)).copied().collect(),
    }
}

/// Why figures of a metric are of different things in two campaigns; `None` if they are not.
fn describe_unlike(metric: Metric, [a, b]: [&RecordedCampaign; 2]) -> Option<String> {
    if metric == Metric::FrameLossRate {
        return Some("its load is that of each record's own fastest arm".to_owned());
    }
    (metric.is_host_cpu() && a.cpu_scope != b.cpu_scope)
        .then(|| format!("CPU scope {} is not {}", b.cpu_scope, a.cpu_scope))
}

/// The metrics of a campaign by which something is compared; if some were requested, only those.
fn list_metrics(campaign: &RecordedCampaign, asked: &[Metric]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for metric in campaign.probes.iter().flat_map(|probe| &probe.metrics) {
        if !metric.is_generator_error() && (asked.is_empty() || asked.contains(metric)) {
            metrics.push(*metric);
        }
    }
    once_each(metrics.into_iter())
}

/// The margin of a metric: the study's own, otherwise that of its other comparisons.
fn margin_of(campaign: &RecordedCampaign, metric: Metric) -> f64 {
    if metric.scale() == Scale::Difference {
        return metric.difference_margin();
    }
    let mut margin = None;
    for question in campaign.questions.iter().filter(|question| question.metric.scale() == Scale::Ratio) {
        if question.metric == metric {
            return question.margin;
        }
        margin = margin.or(Some(question.margin));
    }
    margin.unwrap_or(MARGIN)
}

fn describe_record(campaign: &RecordedCampaign, name: &str) -> RecordFacts {
    let valid_runs = campaign.runs.iter().filter(|run| run.is_valid()).count();
    RecordFacts {
        name: name.to_owned(),
        title: campaign.title.to_owned(),
        version: campaign.version.to_owned(),
        started_unix_ns: campaign.started_unix_ns,
        seed: campaign.seed,
        testbed_description: campaign.testbed_description.to_owned(),
        cpu_scope: campaign.cpu_scope,
        valid_runs,
        invalid_runs: campaign.runs.len() - valid_runs,
    }
}

/// Every difference, hosts first. Equal facts are left out, and so are facts that do not describe the environment (boot
/// identifiers, seeds).
fn differences(a: &RecordedCampaign, b: &RecordedCampaign, loads: &RecordLoads) -> Vec<Apart> {
    let [of_a, of_b] = [a, b].map(facts);
    let rows = of_a.into_iter().zip(of_b);
    let mut found: Vec<Apart> = rows.filter_map(|((what, a), (_, b))| apart(what, a, b)).collect();
    for probe in Probe::ALL {
        // A probe that only one campaign has shows in its metrics.
        let Some(a) = find_probe(a, *probe) else { continue };
        let Some(b) = find_probe(b, *probe) else { continue };
        found.extend(apart(&format!("probe.{probe}.pacing"), a.pacing.to_string(), b.pacing.to_string()));
        found.extend(apart(&format!("probe.{probe}.length"), a.length.to_string(), b.length.to_string()));
        let [a, b] = [a, b].map(|spec| print_duration(spec.warmup_ns));
        found.extend(apart(&format!("probe.{probe}.warmup"), a, b));
    }
    if loads.warning().is_some() {
        let [a, b] = [loads.a, loads.b].map(|load| format!("disturbed {}", load.describe_extent()));
        found.extend(apart("other load", a, b));
    }
    found
}

fn find_probe<'a>(campaign: &RecordedCampaign<'a>, probe: Probe) -> Option<&'a ProbeSpec> {
    campaign.probes.iter().find(|spec| spec.probe == probe)
}

fn apart(what: &str, a: String, b: String) -> Option<Apart> {
    (a != b).then(|| Apart { what: what.to_owned(), a, b })
}

/// Printed for a fact that a host does not report.
const UNKNOWN: &str = "unknown";

fn facts(campaign: &RecordedCampaign) -> Vec<(&'static str, String)> {
    let of = |fact: fn(&HostFacts) -> String| by_host(campaign.hosts, fact);
    let link_config = campaign.link_config;
    vec![
        ("system", of(|host| host.os.clone())),
        ("kernel", of(|host| host.kernel.clone())),
        ("machine", of(|host| host.machine.clone())),
        ("cpu", of(|host| host.cpu_model.clone())),
        ("cores", of(|host| host.cores.to_string())),
        ("memory", of(|host| format!("{:.1} GiB", host.memory_kib as f64 / f64::from(1 << 20)))),
        ("governor", of(|host| host.governor.as_deref().unwrap_or(UNKNOWN).to_owned())),
        ("clock source", of(|host| host.clock_source.as_deref().unwrap_or(UNKNOWN).to_owned())),
        ("virtualised", of(|host| if host.virtualised { "yes" } else { "no" }.to_owned())),
        ("agent version", of(|host| host.agent_version.clone())),
        ("stacklab version", campaign.version.to_owned()),
        ("testbed", campaign.testbed_description.to_owned()),
        ("testbed.rate", link_config.rate.map_or_else(|| "no limit".to_owned(), |rate| rate.to_string())),
        ("testbed.mtu", link_config.mtu.to_string()),
        ("testbed.offloads", if link_config.offloads { "on" } else { "off" }.to_owned()),
        ("CPU scope", campaign.cpu_scope.to_string()),
    ]
}

/// A fact of all hosts: once if they agree, otherwise by name.
fn by_host(hosts: &[(String, HostFacts)], fact: fn(&HostFacts) -> String) -> String {
    let facts: Vec<String> = hosts.iter().map(|(_, facts)| fact(facts)).collect();
    match facts.split_first() {
        None => UNKNOWN.to_owned(),
        Some((first, others)) if others.iter().all(|other| other == first) => first.clone(),
        Some(_) => {
            let named = hosts.iter().zip(facts).map(|((name, _), fact)| format!("{name}: {fact}"));
            named.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests;
