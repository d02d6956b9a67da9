//! Hand-made cells, questions and runs for the tests.

use crate::findings::RecordedCampaign;
use stacklab_model::{
    Cell, Comparison, CpuScope, Endpoint, Estimate, Factor, Family, HostReport, LinkConfig, Metric, Offloads,
    Question, Rate, Role, RunRecord, RunStatus, SizeOf, StopReason, StoppingRule, Topology, Transport, Trial,
    Until, Value, Verdict, Warning,
};
use std::net::SocketAddr;

/// A UDP cell whose sizes are those of payloads.
pub(crate) fn cell(family: Family, size: u32) -> Cell {
    Cell::new(family, Transport::Udp, SizeOf::Payload, size)
}

/// ipv6 against ipv4 at 128 bytes.
pub(crate) fn question(metric: Metric, margin: f64) -> Question {
    Question {
        factor: Factor::Family,
        metric,
        baseline: cell(Family::Ipv4, 128),
        candidate: cell(Family::Ipv6, 128),
        margin,
    }
}

pub(crate) fn link_config(rate: Option<Rate>) -> LinkConfig {
    LinkConfig { rate, mtu: 1500, offloads: false }
}

/// A valid run with one figure.
pub(crate) fn run(block: u32, cell: &Cell, metric: Metric, figure: f64) -> RunRecord {
    run_with(block, cell, metric, Value::Measured(figure))
}

/// A valid run with one value.
pub(crate) fn run_with(block: u32, cell: &Cell, metric: Metric, value: Value) -> RunRecord {
    let trial = Trial { block, position: 0, cell: cell.clone(), probe: metric.probe() };
    RunRecord::with_value(trial, metric, value)
}

/// The run, invalid.
pub(crate) fn invalid(mut run: RunRecord, reason: &str) -> RunRecord {
    run.status = RunStatus::Invalid(vec![reason.to_owned()]);
    run
}

/// The run with warnings.
pub(crate) fn with_warnings(mut run: RunRecord, codes: &[&str]) -> RunRecord {
    run.warnings.clear();
    for code in codes {
        let code = (*code).to_owned();
        run.warnings.push(Warning { code, text: "seen".into(), advice: "mend".into() });
    }
    run
}

/// An answer to a question, without figures.
pub(crate) fn comparison(question: Question) -> Comparison {
    Comparison {
        question,
        baseline_estimate: Estimate::default(),
        candidate_estimate: Estimate::default(),
        effect: None,
        fitted: None,
        tests: None,
        explained: None,
        verdict: Verdict::Inconclusive,
        claimed_interval: None,
        stop_reason: StopReason::Cap,
        more_blocks: None,
        unpaired: None,
        is_bound_wide: false,
        remarks: Vec::new(),
    }
}

/// The runs of [`question`], one block for each pair of (baseline, candidate).
pub(crate) fn runs_of(metric: Metric, pairs: &[(f64, f64)]) -> Vec<RunRecord> {
    let question = question(metric, 0.0);
    let mut runs = Vec::new();
    for (block, (baseline, candidate)) in (0..).zip(pairs) {
        runs.push(run(block, &question.baseline, metric, *baseline));
        runs.push(run(block, &question.candidate, metric, *candidate));
    }
    runs
}

/// A campaign that asks these questions of these runs.
pub(crate) fn campaign<'a>(
    link_config: &'a LinkConfig,
    questions: &'a [Question],
    runs: &'a [RunRecord],
) -> RecordedCampaign<'a> {
    RecordedCampaign {
        title: "a study",
        version: "0.1.0",
        started_unix_ns: 1,
        seed: 7,
        link_config,
        topology: &Topology::Link,
        testbed_description: "a link",
        hosts: &[],
        cpu_scope: CpuScope::Shared,
        cells: &[],
        probes: &[],
        rule: &StoppingRule { min: 2, max: 200, until: Until::Verdict, target: 0.01, budget_ns: None },
        questions,
        stop_reasons: &[StopReason::Cap; 200],
        settled: &[],
        runs,
        throttled_us: 0,
        is_sampled: false,
        is_resumable: true,
        explanations: &[],
        uncounted: &[],
    }
}

/// A host's report without counts.
pub(crate) fn empty_report(role: Role) -> HostReport {
    let any: SocketAddr = "[::]:0".parse().expect("an address");
    let endpoint = Endpoint {
        family: Family::Ipv6,
        transport: Transport::Udp,
        local: any,
        peer: any,
        interface: "st0".to_owned(),
        interface_mtu: 1500,
        path_mtu: None,
        offloads: Offloads::default(),
        congestion_control: None,
        options: Default::default(),
    };
    HostReport::new(role, endpoint)
}
