//! Judges a finding by the runs.

use crate::finding::{Finding, FindingArm, Scope, Sizes, Systems};
use crate::replication::arms::{ComparedCells, parts};
use crate::replication::blocks::{missing, pair_part};
use crate::replication::verdict::{FindingOutcome, PartData, Stated, judge_parts};
use crate::tables::LimitKind;
use crate::{PublishedFigure, Reference};
use serde::Serialize;
use stacklab_analysis::Runs;
use stacklab_model::{Effect, Mechanism, Metric, Scale};
use stacklab_study::Study;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JudgedPart {
    /// Label of the part; empty if there is only one part.
    pub part: String,
    pub outcome: FindingOutcome,
    /// Arm a against arm b: `None` with fewer than two blocks.
    pub effect: Option<Effect>,
    /// The equivalence margin: a ratio's distance from 1, or a difference in the metric's unit.
    pub margin: f64,
    pub because: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Judged {
    /// Its name, such as `S1`.
    pub id: String,
    pub location: String,
    pub statement: String,
    pub scope: String,
    pub metric: Metric,
    pub outcome: FindingOutcome,
    /// Why there is no answer, or how several parts were combined into one answer.
    pub because: String,
    /// What was judged instead of the study's subject; empty if nothing was replaced.
    pub instead: String,
    pub parts: Vec<JudgedPart>,
    pub published: Vec<PublishedPair>,
}

pub(super) fn judge(finding: &Finding, own: &Reference, study: &Study, runs: &Runs) -> Judged {
    let cells = match contradicting(finding, &own.findings) {
        Some(other) => Err(differs_by_system(finding, other)),
        None => parts(finding, &own.limits, study),
    };
    let (outcome, because, judged, instead) = match cells {
        Err(reason) => (FindingOutcome::CannotTell, reason, Vec::new(), String::new()),
        Ok(parts) => {
            let data: Vec<_> = parts.iter().map(|part| part_data(finding, part, study, runs)).collect();
            let stated = Stated { direction: finding.direction, most: finding.scope.sizes == Sizes::Most };
            let verdict = judge_parts(stated, &data);
            let mut judged = Vec::new();
            for (index, (outcome, because)) in verdict.parts.into_iter().enumerate() {
                let part = &parts[index];
                judged.push(JudgedPart {
                    part: part.label.clone(),
                    outcome,
                    effect: data[index].as_ref().ok().map(PartData::effect),
                    margin: margin(finding, part, study),
                    because,
                });
            }
            (verdict.outcome, verdict.because, judged, instead(finding, own))
        }
    };
    Judged {
        id: finding.id.clone(),
        location: finding.location.clone(),
        statement: finding.statement.clone(),
        scope: finding.scope.text.clone(),
        metric: finding.metric,
        outcome,
        because,
        instead,
        parts: judged,
        published: published_pairs(finding, &own.figures),
    }
}

/// Another finding of the study that states something else of the same cells on another system. Here both systems are
/// one kernel, on which at most one of the two can hold.
fn contradicting<'a>(finding: &Finding, all: &'a [Finding]) -> Option<&'a Finding> {
    let Systems::Named(system) = &finding.scope.systems else { return None };
    all.iter().find(|other| {
        let Systems::Named(another) = &other.scope.systems else { return false };
        let Scope { text, systems, .. } = finding.scope.clone();
        let scope = Scope { text, systems, ..other.scope.clone() };
        another != system
            && other.source == finding.source
            && other.metric == finding.metric
            && scope == finding.scope
            && states_otherwise(finding, other)
    })
}

/// Whether two findings state different directions of the same arms.
fn states_otherwise(finding: &Finding, other: &Finding) -> bool {
    match ((other.a, other.b) == (finding.a, finding.b), (other.b, other.a) == (finding.a, finding.b)) {
        (true, _) => other.direction != finding.direction,
        (_, true) => other.direction.reverse() != finding.direction,
        _ => false,
    }
}

fn differs_by_system(finding: &Finding, other: &Finding) -> String {
    let ours = name_system(finding);
    let theirs = name_system(other);
    format!(
        "the study found otherwise on {theirs} ({}): a difference between {ours} and {theirs}, which are one kernel here",
        other.id
    )
}

fn name_system(finding: &Finding) -> &str {
    match &finding.scope.systems {
        Systems::Named(system) => system,
        _ => "another system",
    }
}

/// States what was judged instead of the finding's subject.
fn instead(finding: &Finding, own: &Reference) -> String {
    use LimitKind::{Router, System, Wifi};
    let system = match &finding.scope.systems {
        Systems::Named(system) => format!("on this kernel, which is not {system}"),
        Systems::All => "on this kernel only, which is not one of the study's systems".to_owned(),
        _ => "on this kernel, which is not the study's".to_owned(),
    };
    let kinds: Vec<LimitKind> = own.limits.iter().map(|limit| limit.kind).collect();
    let mut words = if kinds.contains(&System) { vec![system] } else { Vec::new() };
    if kinds.contains(&Router) {
        words.push("all hosts on one kernel".to_owned());
    }
    if kinds.contains(&Wifi) {
        words.push("over simulated Wi-Fi, without a real radio".to_owned());
    }
    words.join(", ")
}

fn part_data(
    finding: &Finding,
    part: &ComparedCells,
    study: &Study,
    runs: &Runs,
) -> Result<PartData, String> {
    let metric = finding.metric;
    let paired = pair_part(part, metric, metric.scale(), runs)
        .map_err(|reason| missing(part, metric, runs).unwrap_or(reason))?;
    let limit = match finding.scope.within_points {
        Some(most) => Some((pair_part(part, metric, Scale::Difference, runs)?, most)),
        None => None,
    };
    Ok(PartData { scale: metric.scale(), paired, margin: margin(finding, part, study), limit })
}

/// The equivalence margin: that of the study's comparison of the same arms, else 2 %.
fn margin(finding: &Finding, part: &ComparedCells, study: &Study) -> f64 {
    let metric = finding.metric;
    let (a, b) = &part.pairs[0];
    let asked = study.comparisons.iter().find(|comparison| {
        a.level(comparison.factor) != b.level(comparison.factor) && comparison.metrics.contains(&metric)
    });
    match metric.scale() {
        Scale::Ratio => asked.map_or(0.02, |comparison| comparison.margin),
        Scale::Difference => metric.difference_margin(),
    }
}

/// Two published figures, of arm a and of arm b, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PublishedPair {
    /// Location, systems and other settings that both share.
    pub what: String,
    pub a: String,
    pub b: String,
    pub unit: String,
}

/// The pairs of figures that differ only in a finding's arms.
fn published_pairs(finding: &Finding, figures: &[PublishedFigure]) -> Vec<PublishedPair> {
    let name = published_name(finding.metric);
    let own = figures.iter().filter(|figure| figure.metric == name && is_meant(figure, finding));
    let own: Vec<&PublishedFigure> = own.collect();
    let a = finding.a;
    let b = finding.b;
    let mut found = Vec::new();
    for first in own.iter().filter(|figure| is(figure, a)) {
        let second = own.iter().find(|second| is(second, b) && alike(first, second, a));
        if let Some(second) = second {
            found.push(PublishedPair {
                what: what(first, a),
                a: first.value.to_string(),
                b: second.value.to_string(),
                unit: first.unit.clone(),
            });
        }
    }
    found
}

/// The name of a metric in the tables.
pub fn published_name(metric: Metric) -> &'static str {
    match metric {
        Metric::OneWayDelay => "delay",
        Metric::SenderCpuSystem => "cpu-system",
        Metric::CpuSender => "cpu-sender",
        other => other.name(),
    }
}

fn is(figure: &PublishedFigure, arm: FindingArm) -> bool {
    match arm {
        FindingArm::Family(family) => figure.ip == family.name(),
        FindingArm::Transport(transport) => figure.transport == transport.name(),
        FindingArm::Size(size) => figure.size == size.to_string(),
        FindingArm::Tunnel(Some(tunnel)) => figure.mechanism == mechanism(tunnel),
        FindingArm::ClientServer(true) => figure.topology == "client-server",
        FindingArm::ClientServer(false) => figure.topology == "peer-to-peer",
        FindingArm::Tunnel(None)
        | FindingArm::Buffers { .. }
        | FindingArm::Mtu { .. }
        | FindingArm::Wpa2(_) => false,
    }
}

fn mechanism(tunnel: Mechanism) -> &'static str {
    if tunnel == Mechanism::SixInFour { "configured-tunnel" } else { tunnel.name() }
}

/// Whether two figures share everything except the arms' factor. Systems differ with the topology.
fn alike(a: &PublishedFigure, b: &PublishedFigure, arm: FindingArm) -> bool {
    // Both figures are from one location, except for arms with separate locations.
    let has_locations = matches!(arm, FindingArm::Size(_) | FindingArm::Transport(_) | FindingArm::Tunnel(_));
    (matches!(arm, FindingArm::ClientServer(_)) || (a.os == b.os && a.topology == b.topology))
        && (matches!(arm, FindingArm::Family(_)) || a.ip == b.ip)
        && (matches!(arm, FindingArm::Transport(_)) || a.transport == b.transport)
        && (matches!(arm, FindingArm::Size(_)) || a.size == b.size)
        && (matches!(arm, FindingArm::Tunnel(_)) || a.mechanism == b.mechanism)
        && (has_locations || a.location == b.location)
}

/// Whether a figure meets the finding's conditions, as far as the figure states them.
fn is_meant(figure: &PublishedFigure, finding: &Finding) -> bool {
    let scope = &finding.scope;
    let transport = matches!(finding.a, FindingArm::Transport(_))
        || scope.transports.is_empty()
        || scope.transports.iter().any(|transport| transport.name() == figure.transport);
    let size = matches!(finding.a, FindingArm::Size(_))
        || match figure.size.parse() {
            Ok(size) => scope.sizes.contains(size),
            Err(_) => !matches!(scope.sizes, Sizes::Only(_)),
        };
    let tunnel = scope.tunnel.is_none_or(|tunnel| figure.mechanism == mechanism(tunnel));
    let system = match &scope.systems {
        Systems::Named(name) => match name.as_str() {
            "RHES 5.5" => figure.os.contains("Red Hat"),
            name => figure.os.contains(name.split(' ').next().unwrap_or(name)),
        },
        _ => true,
    };
    transport && size && tunnel && system
}

fn what(figure: &PublishedFigure, arm: FindingArm) -> String {
    let mut words = vec![figure.location.clone(), figure.os.clone()];
    if !matches!(arm, FindingArm::Transport(_)) {
        words.push(figure.transport.clone());
    }
    if !matches!(arm, FindingArm::Family(_)) {
        words.push(figure.ip.clone());
    }
    if !matches!(arm, FindingArm::Size(_)) {
        words.push(match figure.size.as_str() {
            "all" => "mean over sizes".to_owned(),
            size if size.parse::<u32>().is_ok() => format!("{size} B"),
            size => size.to_owned(),
        });
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FindingDirection;

    #[test]
    fn differing_systems_are_not_told_apart_on_one_kernel() {
        let all = Reference::built_in().unwrap().findings;
        let contradicted: Vec<(&str, &str)> = all
            .iter()
            .filter_map(|finding| Some((finding.id.as_str(), contradicting(finding, &all)?.id.as_str())))
            .collect();
        assert_eq!(contradicted, [("S3", "S4"), ("S4", "S3")]);
        let s3 = find_finding(&all, "S3");
        let s4 = find_finding(&all, "S4");
        let reason = differs_by_system(s3, s4);
        assert!(reason.contains("on Ubuntu 10.04 (S4)") && reason.contains("RHES 5.5"), "{reason}");
        // The same direction on another system is no contradiction, however it is written.
        let same = Finding { a: s3.a, b: s3.b, ..s4.clone() };
        assert_eq!(contradicting(s3, &[same]), None);
        let swapped = Finding { direction: FindingDirection::Lower, ..s4.clone() };
        assert_eq!(contradicting(s3, &[swapped]), None);
    }

    fn find_finding<'a>(all: &'a [Finding], id: &str) -> &'a Finding {
        all.iter().find(|finding| finding.id == id).unwrap()
    }

    fn of(id: &str) -> Vec<(String, String)> {
        let all = Reference::built_in().unwrap();
        let finding = find_finding(&all.findings, id);
        published_pairs(finding, &all.of(&finding.source).figures)
            .into_iter()
            .map(|pair| (pair.a, pair.b))
            .collect()
    }

    #[test]
    fn figures_stand_beside_the_finding_that_they_led_to() {
        assert_eq!(of("S3"), [copy_pair("812.23", "698.26")]);
        assert_eq!(of("S4"), [copy_pair("798.67", "750.85")]);
        assert_eq!(of("S5"), [copy_pair("2.07", "3.11"), copy_pair("5.56", "7.53")]);
        assert_eq!(of("S7"), [copy_pair("0.16", "0.16"), copy_pair("0.21", "0.22")]);
        let falls = [copy_pair("89.84", "84.0"), copy_pair("90.35", "84.11"), copy_pair("90.44", "84.3")];
        assert_eq!(of("O3"), falls);
        assert_eq!(of("S9"), []);
        assert_eq!(of("L4").len(), 2);
        assert_eq!(of("O4").len(), 13);
    }

    fn copy_pair(a: &str, b: &str) -> (String, String) {
        (a.to_owned(), b.to_owned())
    }
}
