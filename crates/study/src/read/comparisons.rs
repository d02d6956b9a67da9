//! The questions of a study.

use crate::counted::find_counted_probe;
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::read::factors::{Factors, levels};
use crate::read::{At, Node};
use stacklab_model::{ComparisonSpec, Factor, Metric, ProbeSpec};
use std::collections::BTreeSet;

pub(super) fn read(
    node: Node,
    factors: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) -> Vec<ComparisonSpec> {
    let mut found: Vec<At<ComparisonSpec>> = Vec::new();
    for node in node.items() {
        let (Some(value), Some(place)) = (comparison(node, factors, probes, problems), node.place()) else {
            continue;
        };
        if let Some(earlier) = found.iter().find(|earlier| overlap(&earlier.value, &value)) {
            problems.add(
                Problem::at(place, "this comparison duplicates another one", "again here")
                    .with_related_place(&earlier.place, "first here")
                    .help("give them different `metrics`, or remove one"),
            );
        }
        found.push(At { value, place: place.clone() });
    }
    found.into_iter().map(|comparison| comparison.value).collect()
}

fn comparison(
    node: Node,
    factors: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) -> Option<ComparisonSpec> {
    let taken: Vec<Metric> = probes.iter().flat_map(|probe| probe.metrics.iter().copied()).collect();
    let metrics = metrics(node.get("metrics"), &taken, problems);
    let at: At<Factor> = node.get("factor").at(leaf::name, problems)?;
    let factor = at.value;
    let baseline = node.get("baseline").at(leaf::level, problems);
    let candidate = node.get("candidate").at(leaf::level, problems);
    let levels = levels(factors, factor);
    if levels.is_empty() {
        // Other factors are required, so their absence has been said; and so have wrong levels.
        let is_named = factors.iter().any(|one| one.named.contains(&factor));
        if !is_named && (factor == Factor::Replica || factor.is_setting()) {
            problems.add(
                at.problem(format!("the study has no factor `{factor}`"), "nothing to compare")
                    .help(format!("add {factor} = {} to [factors]", example(factor))),
            );
        }
        return None;
    }
    for level in [&baseline, &candidate].into_iter().flatten() {
        if !levels.contains(&level.value) {
            let title = format!("`{}` is not a level of factor {factor} in this study", level.value);
            let problem = level.problem(title, format!("expected one of {}", levels.join(", ")));
            problems.add(problem.nearest(&level.value, levels.iter().map(String::as_str)));
        }
    }
    let baseline = baseline?;
    let candidate = candidate?;
    if baseline.value == candidate.value {
        let title = format!("baseline and candidate are both `{}`", candidate.value);
        problems.add(
            candidate
                .problem(title, "expected another level")
                .with_related_place(&baseline.place, "the same as this")
                .help("to check a study against itself, compare two levels of factor replica"),
        );
        return None;
    }
    Some(ComparisonSpec {
        factor,
        baseline: baseline.value,
        candidate: candidate.value,
        metrics,
        margin: node.get("margin").value(leaf::share, problems)?,
        instructions: instructions(node.get("instructions"), probes, problems)?,
    })
}

/// Whether instructions are counted. There must be messages to count.
fn instructions(node: Node, probes: &[ProbeSpec], problems: &mut Problems) -> Option<bool> {
    let asked = node.at(leaf::boolean, problems)?;
    if asked.value && find_counted_probe(probes).is_none() {
        problems.add(
            asked
                .problem(
                    "instructions are counted of streams, of echoes and of programs",
                    "the study has none",
                )
                .help("add [probe.stream] or [probe.echo], or [[program]] tables with [probe.program], or leave `instructions` out"),
        );
    }
    Some(asked.value)
}

/// Two levels, as written, of a factor that a study may omit.
fn example(factor: Factor) -> &'static str {
    match factor {
        Factor::Replica => "[\"a\", \"b\"]",
        Factor::Os => "[\"namespace\", \"gvisor\"]",
        Factor::Services => "[\"none\", \"dns+dhcp+directory\"]",
        Factor::Mechanism => "[\"native\", \"6in4\"]",
        Factor::Translator => "[\"tayga\", \"jool\"]",
        Factor::Rules => "[0, 1000]",
        Factor::RuleForm => "[\"list\", \"set\"]",
        Factor::Socket => "[\"native\", \"ipv4-mapped\"]",
        Factor::Routes => "[0, 100000]",
        Factor::Destinations => "[1, 10000]",
        Factor::Neighbours => "[0, 10000]",
        Factor::Conntrack => "[\"off\", 0]",
        Factor::FlowOffload => "[\"off\", \"on\"]",
        Factor::RouterQueue => "[\"inline\", \"thread\"]",
        Factor::Clients => "[1, 4]",
        Factor::RouterOs => "[\"namespace\", \"uml\"]",
        Factor::Generator => "[\"stacklab\", \"iperf3\"]",
        Factor::Program => "[\"nginx\", \"caddy\"]",
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
fn metrics(list: Node, taken: &[Metric], problems: &mut Problems) -> Vec<Metric> {
    if list.0.is_none() {
        return taken.iter().copied().filter(|metric| metric.allows_comparison()).collect();
    }
    let asked = list.list(leaf::any_metric, problems);
    for metric in asked.iter().filter(|metric| !metric.value.allows_comparison()) {
        let why = match metric.value.is_property() {
            true => "it describes the path and has no verdict; the report shows it",
            false => "it is the error of a generator against the interface's counters, and has no verdict",
        };
        problems.add(metric.problem(format!("nothing is compared by `{}`", metric.value), why));
    }
    for metric in asked.iter().filter(|metric| !taken.contains(&metric.value)) {
        let name = metric.value;
        let probe = metric.value.probe();
        problems.add(
            metric
                .problem(format!("the study does not measure `{name}`"), "nothing to compare")
                .help(format!("add \"{name}\" to `metrics` of [probe.{probe}]")),
        );
    }
    asked.into_iter().map(|metric| metric.value).collect()
}

/// Whether two comparisons share a question, in whichever direction it is asked.
fn overlap(a: &ComparisonSpec, b: &ComparisonSpec) -> bool {
    a.factor == b.factor
        && pair_levels(a) == pair_levels(b)
        && a.metrics.iter().any(|metric| b.metrics.contains(metric))
}

fn pair_levels(comparison: &ComparisonSpec) -> BTreeSet<&str> {
    BTreeSet::from([comparison.baseline.as_str(), comparison.candidate.as_str()])
}
