//! Published figures for the arms of a finding.

use crate::{Finding, FindingArm, PublishedFigure, Sizes, Systems};
use serde::Serialize;
use stacklab_model::{Mechanism, Metric};

/// Two published figures, of arm a and of arm b, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PublishedPair {
    /// Location, systems and other settings that both share.
    pub what: String,
    pub a: String,
    pub b: String,
    pub unit: String,
}

/// The pairs of figures that differ only in a finding's arms.
pub(super) fn published_pairs(finding: &Finding, figures: &[PublishedFigure]) -> Vec<PublishedPair> {
    let is_meant =
        |figure: &&PublishedFigure| figure.metric == name(finding.metric) && meant(figure, finding);
    let (a, b) = (finding.a, finding.b);
    let mut found = Vec::new();
    for first in figures.iter().filter(is_meant).filter(|figure| is(figure, a)) {
        let second = figures.iter().filter(is_meant).find(|second| is(second, b) && alike(first, second, a));
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
pub fn name(metric: Metric) -> &'static str {
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
    let free = |is_free: bool, same: bool| is_free || same;
    let topology = matches!(arm, FindingArm::ClientServer(_));
    free(topology, a.os == b.os && a.topology == b.topology)
        && free(matches!(arm, FindingArm::Family(_)), a.ip == b.ip)
        && free(matches!(arm, FindingArm::Transport(_)), a.transport == b.transport)
        && free(matches!(arm, FindingArm::Size(_)), a.size == b.size)
        && free(matches!(arm, FindingArm::Tunnel(_)), a.mechanism == b.mechanism)
        // Both figures are from one location, except for arms with separate locations.
        && free(matches!(arm, FindingArm::Size(_) | FindingArm::Transport(_) | FindingArm::Tunnel(_)), a.location == b.location)
}

/// Whether a figure meets the finding's conditions, as far as the figure states them.
fn meant(figure: &PublishedFigure, finding: &Finding) -> bool {
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
    use crate::Reference;

    fn of(id: &str) -> Vec<(String, String)> {
        let all = Reference::built_in().unwrap();
        let finding = all.findings.iter().find(|finding| finding.id == id).unwrap();
        published_pairs(finding, &all.of(&finding.source).figures)
            .into_iter()
            .map(|pair| (pair.a, pair.b))
            .collect()
    }

    #[test]
    fn figures_stand_beside_the_finding_that_they_led_to() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of("S3"), [pair("812.23", "698.26")]);
        assert_eq!(of("S4"), [pair("798.67", "750.85")]);
        assert_eq!(of("S5"), [pair("2.07", "3.11"), pair("5.56", "7.53")]);
        assert_eq!(of("S7"), [pair("0.16", "0.16"), pair("0.21", "0.22")]);
        let falls = [pair("89.84", "84.0"), pair("90.35", "84.11"), pair("90.44", "84.3")];
        assert_eq!(of("O3"), falls);
        assert_eq!(of("S9"), []);
        assert_eq!(of("L4").len(), 2);
        assert_eq!(of("O4").len(), 13);
    }
}
