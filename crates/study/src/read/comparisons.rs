//! The questions of a study.

use super::factors::{Factors, levels};
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{At, at, items};
use stacklab_model::{ComparisonSpec, Factor, Metric, ProbeSpec};

/// Reads the comparisons in the order written.
pub(super) fn read(
    node: Option<&Located>,
    factors: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) -> Vec<ComparisonSpec> {
    let taken: Vec<Metric> = probes.iter().flat_map(|probe| probe.metrics.iter().copied()).collect();
    let mut found: Vec<At<ComparisonSpec>> = Vec::new();
    for node in node.map_or(&[][..], |node| node.items()) {
        let Some(comparison) = comparison(node, factors, &taken, problems) else { continue };
        if let Some(earlier) = found.iter().find(|earlier| overlap(&earlier.value, &comparison)) {
            problems.add(
                Problem::at(node.place.clone(), "this comparison duplicates another one", "again here")
                    .related(earlier.place.clone(), "first here")
                    .help("give them different `metrics`, or remove one"),
            );
        }
        found.push(At { value: comparison, place: node.place.clone() });
    }
    found.into_iter().map(|comparison| comparison.value).collect()
}

fn comparison(
    node: &Located,
    factors: &[Factors],
    taken: &[Metric],
    problems: &mut Problems,
) -> Option<ComparisonSpec> {
    let metrics = metrics(node, taken, problems);
    let factor: At<Factor> = at(node.get("factor"), leaf::name, problems)?;
    let baseline = at(node.get("baseline"), leaf::level, problems);
    let candidate = at(node.get("candidate"), leaf::level, problems);
    let levels = levels(factors, factor.value);
    if levels.is_empty() {
        // Other factors are required, so their absence has been said.
        if factor.value == Factor::Replica || factor.value.is_setting() {
            let levels = example(factor.value);
            problems.add(
                Problem::at(
                    factor.place,
                    format!("the study has no factor `{}`", factor.value),
                    "nothing to compare",
                )
                .help(format!("add {} = {levels} to [factors]", factor.value)),
            );
        }
        return None;
    }
    for level in [&baseline, &candidate].into_iter().flatten() {
        if !levels.contains(&level.value) {
            problems.add(
                Problem::at(
                    level.place.clone(),
                    format!("`{}` is not a level of factor {} in this study", level.value, factor.value),
                    format!("expected one of {}", levels.join(", ")),
                )
                .nearest(&level.value, levels.iter().map(String::as_str)),
            );
        }
    }
    let (baseline, candidate) = (baseline?, candidate?);
    if baseline.value == candidate.value {
        problems.add(
            Problem::at(
                candidate.place,
                format!("baseline and candidate are both `{}`", candidate.value),
                "expected another level",
            )
            .related(baseline.place, "the same as this")
            .help("to check a study against itself, compare two levels of factor replica"),
        );
        return None;
    }
    Some(ComparisonSpec {
        factor: factor.value,
        baseline: baseline.value,
        candidate: candidate.value,
        metrics,
        margin: at(node.get("margin"), leaf::share, problems)?.value,
    })
}

/// Two levels, as written, of a factor that a study may omit.
fn example(factor: Factor) -> &'static str {
    match factor {
        Factor::Replica => "[\"a\", \"b\"]",
        Factor::Os => "[\"namespace\", \"gvisor\"]",
        Factor::Services => "[\"none\", \"dns+dhcp+directory\"]",
        Factor::Mechanism => "[\"native\", \"6in4\"]",
        Factor::Translator => "[\"tayga\", \"jool\"]",
        Factor::RouterOs => "[\"namespace\", \"uml\"]",
        Factor::Generator => "[\"stacklab\", \"iperf3\"]",
        Factor::Programs => "[\"base/src\", \"candidate/src\"]",
        Factor::Io => "[\"send\", \"sendmmsg\"]",
        Factor::Direction => "[\"forward\", \"reverse\"]",
        Factor::Pinning => "[\"halves\", \"none\"]",
        Factor::CongestionControl => "[\"cubic\", \"reno\"]",
        Factor::Nodelay | Factor::KernelPacing => "[true, false]",
        Factor::Mtu => "[1500, 9000]",
        Factor::Mss => "[536, 1440]",
        Factor::SendBuffer | Factor::ReceiveBuffer => "[65536, 1048576]",
        Factor::Dscp => "[0, 46]",
        Factor::FlowLabel => "[1, 2]",
        _ => "[1, 10]",
    }
}

/// The metrics compared, all of which a probe must take; by default all taken that can be better or worse.
fn metrics(node: &Located, taken: &[Metric], problems: &mut Problems) -> Vec<Metric> {
    let Some(list) = node.get("metrics") else {
        return taken.iter().copied().filter(|metric| metric.is_compared()).collect();
    };
    let asked = items(Some(list), |node| leaf::metric(node, None), problems);
    for metric in asked.iter().filter(|metric| !metric.value.is_compared()) {
        let why = match metric.value.is_property() {
            true => "it describes the path and has no verdict; the report shows it",
            false => "it is the error of a generator against the interface's counters, and has no verdict",
        };
        problems.add(Problem::at(
            metric.place.clone(),
            format!("nothing is compared by `{}`", metric.value),
            why,
        ));
    }
    for metric in asked.iter().filter(|metric| !taken.contains(&metric.value)) {
        let (name, probe) = (metric.value, metric.value.probe());
        problems.add(
            Problem::at(
                metric.place.clone(),
                format!("the study does not measure `{name}`"),
                "nothing to compare",
            )
            .help(format!("add \"{name}\" to `metrics` of [probe.{probe}]")),
        );
    }
    asked.into_iter().map(|metric| metric.value).collect()
}

/// Whether two comparisons share a question, in whichever direction it is asked.
fn overlap(a: &ComparisonSpec, b: &ComparisonSpec) -> bool {
    let pair = |c: &ComparisonSpec| {
        let mut pair = [c.baseline.clone(), c.candidate.clone()];
        pair.sort();
        pair
    };
    a.factor == b.factor && pair(a) == pair(b) && a.metrics.iter().any(|metric| b.metrics.contains(metric))
}
