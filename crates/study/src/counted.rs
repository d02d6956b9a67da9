//! The cells whose instructions a study asks for, as arms of the machine that counts them: it knows fewer settings than
//! a study.

use crate::study::Study;
use stacklab_model::{
    Cell, ComparisonSpec, ExactArm, ExactPair, ExactPath, ExactProbe, Explanation, Factor, LinkConfig, Links,
    Mechanism, Probe, ProbeSpec, Publisher, RoutedKind, SizeOf, Topology, Translator, Transport,
    count_destinations,
};

/// The links of the emulated machine.
pub const LINK: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };

/// Why further neighbours are not counted: one guest has the networks of both arms.
pub const ONE_NEIGHBOUR_TABLE: &str = "the kernel has one table of neighbours for all namespaces";

/// Two compared cells whose instructions are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedPair {
    /// The cells, with the probe whose messages are counted, and nothing that explains them yet.
    pub explanation: Explanation,
    /// How they are counted, or why they cannot be: `messages with flows 4`.
    pub way: Result<CountWay, String>,
}

/// What is counted of a pair of cells.
#[derive(Debug, Clone, PartialEq)]
pub enum CountWay {
    /// The messages of two arms in the emulated machine.
    Messages(ExactPair),
    /// The requests of the study's programs, which an emulator executes.
    Requests,
}

/// The probe whose messages or requests are counted, if a study has one.
pub(crate) fn find_counted_probe(probes: &[ProbeSpec]) -> Option<Probe> {
    [Probe::Stream, Probe::Echo, Probe::Program]
        .into_iter()
        .find(|probe| probes.iter().any(|spec| spec.probe == *probe))
}

impl Study {
    /// The pairs of cells whose instructions its comparisons ask for, in their order. Comparisons of other metrics may
    /// have the same pairs.
    pub fn list_counted_pairs(&self) -> Vec<CountedPair> {
        let mut all: Vec<CountedPair> = Vec::new();
        let Some(probe) = find_counted_probe(&self.probes) else { return all };
        for comparison in self.comparisons.iter().filter(|comparison| comparison.instructions) {
            for cell in self.cells.iter().filter(|cell| probe.measures(cell)) {
                let Some(pair) = self.pair_cells(comparison, probe, cell) else { continue };
                if !all.contains(&pair) {
                    all.push(pair);
                }
            }
        }
        all
    }

    /// The pair of a comparison with this baseline, if the cell is one and has a candidate.
    fn pair_cells(&self, comparison: &ComparisonSpec, probe: Probe, cell: &Cell) -> Option<CountedPair> {
        let ComparisonSpec { factor, baseline, candidate, .. } = comparison;
        if cell.level(*factor) != *baseline {
            return None;
        }
        let mut other = cell.clone();
        other.set(*factor, candidate).ok()?;
        if !self.cells.contains(&other) {
            return None;
        }
        let way = match probe {
            Probe::Program => Ok(CountWay::Requests),
            _ => exact_pair(self, probe, [cell, &other])
                .map(CountWay::Messages)
                .map_err(|reason| format!("messages {reason}")),
        };
        let explanation = Explanation::of_cells(probe, *factor, cell.clone(), other);
        Some(CountedPair { explanation, way })
    }
}

/// The arms of two cells in the emulated machine. The error is what keeps them out of it.
pub fn exact_pair(study: &Study, probe: Probe, cells: [&Cell; 2]) -> Result<ExactPair, String> {
    let probe = match (probe, cells[0].transport) {
        _ if cells[0].transport != cells[1].transport => return Err("of two transports".to_owned()),
        (Probe::Stream, Transport::Udp) => ExactProbe::Udp,
        (Probe::Stream, Transport::Tcp) => ExactProbe::Tcp,
        (Probe::Echo, Transport::Udp) => ExactProbe::Echo,
        (probe, transport) => return Err(format!("of {probe} over {transport}")),
    };
    if study.link_config != LINK {
        return Err("with a rate limit, offloads or another MTU than 1500".to_owned());
    }
    let is_routed = match &study.topology {
        Topology::Link => false,
        Topology::Routed(links) if *links == Links::default() => true,
        _ => return Err("over such a network: name a link, or routers with equal links".to_owned()),
    };
    for cell in cells {
        check_settings(cell)?;
    }
    let pair = ExactPair { probe, arms: cells.map(|cell| exact_arm(cell, is_routed)) };
    pair.check().map_err(|reason| format!("with {reason}"))?;
    Ok(pair)
}

/// The settings that the emulated machine knows.
const KNOWN: [Factor; 9] = [
    Factor::Mechanism,
    Factor::Translator,
    Factor::Socket,
    Factor::Rules,
    Factor::RuleForm,
    Factor::Routes,
    Factor::Neighbours,
    Factor::Conntrack,
    Factor::Destinations,
];

fn check_settings(cell: &Cell) -> Result<(), String> {
    if let Some((factor, level)) = cell.settings.levels().find(|(factor, _)| !KNOWN.contains(factor)) {
        return Err(format!("with {factor} {level}"));
    }
    if cell.settings.translator.is_some_and(|translator| translator != Translator::Tayga) {
        return Err("with another translator than tayga".to_owned());
    }
    let mechanism = cell.settings.mechanism.unwrap_or(Mechanism::Native);
    if mechanism.publisher().is_some_and(Publisher::is_program) {
        return Err(format!("with mechanism {mechanism}: its program is not in the emulated machine"));
    }
    let neighbours = cell.settings.neighbours.unwrap_or_default();
    if neighbours > 0 {
        return Err(format!("with neighbours {neighbours}: {ONE_NEIGHBOUR_TABLE}"));
    }
    if count_destinations(cell) > 1 {
        return Err("to several destinations".to_owned());
    }
    if cell.size_of == SizeOf::Write {
        return Err("of messages that the kernel may join (size_of write)".to_owned());
    }
    Ok(())
}

fn exact_arm(cell: &Cell, is_routed: bool) -> ExactArm {
    ExactArm {
        family: cell.family,
        path: match is_routed {
            true => ExactPath::Routed(cell.settings.mechanism.unwrap_or(Mechanism::Native)),
            false => ExactPath::Link,
        },
        size: cell.payload_bytes(),
        rules: 0,
        routes: cell.settings.routes.unwrap_or_default(),
        conntrack: cell.settings.conntrack.unwrap_or_default(),
        firewall: RoutedKind::of(cell).rules,
        socket: cell.settings.tuning.socket.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};
    use stacklab_model::{Family, RuleForm, Rules, Tracking};

    fn study(text: &str) -> Study {
        parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn tables() -> Study {
        study(include_str!("../../../studies/tables.toml"))
    }

    #[test]
    fn tables_are_counted_with_one_destination() {
        let pairs = tables().list_counted_pairs();
        let (counted, left_out): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.way.is_ok());
        // Routes and tracking beside both levels of the other, and a list and a set of rules, in each family.
        assert_eq!((counted.len(), left_out.len()), (12, 8));
        for pair in left_out {
            assert_eq!(pair.way, Err("messages to several destinations".to_owned()));
        }
        let arms = counted.iter().map(|pair| match &pair.way {
            Ok(CountWay::Messages(pair)) => pair.arms[1],
            other => panic!("{other:?}"),
        });
        let arms: Vec<ExactArm> = arms.filter(|arm| arm.family == Family::Ipv6).collect();
        for (count, form) in [(1000, RuleForm::List), (10_000, RuleForm::Set)] {
            assert!(arms.iter().any(|arm| arm.firewall == Rules { count, form }), "{form}");
        }
        assert!(arms.iter().any(|arm| arm.routes == 100_000 && arm.conntrack == Tracking::On(20_000)));
    }

    /// Why the pairs of a study with this in place of that cannot be counted; empty if they can.
    fn reasons(this: &str, that: &str) -> Vec<String> {
        assert!(STUDY.contains(that), "{that}");
        let pairs = study(&STUDY.replace(that, this)).list_counted_pairs();
        let reasons = pairs.into_iter().filter_map(|pair| pair.way.err());
        reasons.map(|reason| reason.strip_prefix("messages ").unwrap().to_owned()).collect()
    }

    const STUDY: &str = r#"
title = "counted"
[testbed]
topology = "routed"
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128]
[probe.stream]
metrics = ["throughput"]
length = { time = "100ms" }
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
instructions = true
"#;

    #[test]
    fn comparisons_of_other_metrics_share_their_pairs() {
        let comparison = &STUDY[STUDY.find("[[comparison]]").unwrap()..];
        let again = format!("{STUDY}metrics = [\"throughput\"]\n{comparison}metrics = [\"loss\"]\n");
        let again = again
            .replace("metrics = [\"throughput\"]\nlength", "metrics = [\"throughput\", \"loss\"]\nlength");
        assert_eq!(study(&again).comparisons.len(), 2);
        assert_eq!(study(&again).list_counted_pairs().len(), 1);
    }

    #[test]
    fn settings_that_are_not_known_are_named() {
        assert!(reasons("", "").is_empty());
        for (this, that, reason) in [
            ("[factors]\nflows = [4]", "[factors]", "with flows 4"),
            ("mtu = 1400\n[factors]", "[factors]", "with a rate limit, offloads or another MTU than 1500"),
            ("size = [16_385]", "size = [128]", "with messages of 16385 bytes: "),
            (
                "[factors]\nrules = [20_000]",
                "[factors]",
                "with rules 20000: the emulated machine has room for 10000",
            ),
            (
                "[factors]\nroutes = [200_000]\nconntrack = [160_000]",
                "[factors]",
                "with 720000 entries in the routers' tables: the emulated machine has room for 700000",
            ),
            (
                "[factors]\nmechanism = [\"docker-proxy\"]",
                "[factors]",
                "with mechanism docker-proxy: its program is not in the emulated machine",
            ),
            ("[factors]\nneighbours = [100]", "[factors]", "with neighbours 100: the kernel has one table"),
            ("[testbed]\ndelay = \"1ms\"", "[testbed]", "over such a network"),
        ] {
            let found = reasons(this, that);
            assert!(found.iter().any(|found| found.starts_with(reason)), "{found:?}");
        }
        assert!(reasons("instructions = false", "instructions = true").is_empty());
    }
}
