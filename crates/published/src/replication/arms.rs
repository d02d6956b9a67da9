//! Selects the cells of a study that represent the two arms of a finding.

use crate::finding::{Finding, FindingArm, Systems};
use crate::tables::{Limit, LimitKind};
use stacklab_model::wifi::Security;
use stacklab_model::{Cell, Factor, Mechanism, Services, Topology};
use stacklab_study::Study;

/// Cells that are judged together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComparedCells {
    /// Label of the part; empty if there is only one part.
    pub label: String,
    /// Cells of arm a, each with the matching cell of arm b.
    pub pairs: Vec<(Cell, Cell)>,
}

/// States that a tunnel was not measured, and how to measure it.
fn explain_absent_tunnel(tunnel: Mechanism) -> String {
    let name = tunnel.name();
    format!("it is about {name}, which was not measured: add \"{name}\" to factors.mechanism")
}

/// The parts of a finding, in the study's order; or why there are no such cells, and what would make it possible.
pub(super) fn parts(
    finding: &Finding,
    limits: &[Limit],
    study: &Study,
) -> Result<Vec<ComparedCells>, String> {
    if matches!(finding.a, FindingArm::Wpa2(_)) && study.topology == Topology::Link {
        return Err("there is no WPA2 on a wire".to_owned());
    }
    if finding.scope.systems == Systems::Compared {
        return Err(explain_compared_systems(limits));
    }
    if let Some(tunnel) = find_absent_tunnel(finding, study) {
        return Err(explain_absent_tunnel(tunnel));
    }
    let (factor, [a, b]) = levels(finding, study)?;
    let mut parts: Vec<ComparedCells> = Vec::new();
    for cell in
        study.cells.iter().filter(|cell| cell.level(factor) == a && applies(cell, finding, factor, study))
    {
        let found = study.cells.iter().find(|other| other.level(factor) == b && other.same_but(cell, factor));
        let Some(other) = found else { continue };
        let label = label(cell, finding, factor);
        match parts.iter_mut().find(|part| part.label == label) {
            Some(part) => part.pairs.push((cell.clone(), other.clone())),
            None => parts.push(ComparedCells { label, pairs: vec![(cell.clone(), other.clone())] }),
        }
    }
    if parts.is_empty() {
        return Err(format!("the study measures no cells that differ in {factor} {a} and {b} alone"));
    }
    Ok(parts)
}

/// States that systems cannot be compared, and what this would need.
fn explain_compared_systems(limits: &[Limit]) -> String {
    let reason = "it compares systems, and there is one kernel";
    let about_systems = limits.iter().filter(|limit| limit.kind == LimitKind::System);
    let needs: Vec<&str> = about_systems.map(|limit| limit.needs.as_str()).collect();
    if needs.is_empty() { reason.to_owned() } else { format!("{reason}; it needs {}", needs.join("; and ")) }
}

/// The first tunnel of a finding that the study does not measure: of its arms, then of its conditions.
fn find_absent_tunnel(finding: &Finding, study: &Study) -> Option<Mechanism> {
    let mut tunnels = Vec::new();
    if let (FindingArm::Tunnel(a), FindingArm::Tunnel(b)) = (finding.a, finding.b) {
        tunnels.extend(a);
        tunnels.extend(b);
    }
    tunnels.extend(finding.scope.tunnel);
    let built = study.mechanisms();
    tunnels.into_iter().find(|tunnel| !built.contains(tunnel))
}

/// The factor that distinguishes a finding's arms, and its levels.
fn levels(finding: &Finding, study: &Study) -> Result<(Factor, [String; 2]), String> {
    Ok(match (finding.a, finding.b) {
        (FindingArm::Family(a), FindingArm::Family(b)) => (Factor::Family, [a.to_string(), b.to_string()]),
        (FindingArm::Transport(a), FindingArm::Transport(b)) => {
            (Factor::Transport, [a.to_string(), b.to_string()])
        }
        (FindingArm::Tunnel(Some(a)), FindingArm::Tunnel(Some(b))) => {
            (Factor::Mechanism, [a.to_string(), b.to_string()])
        }
        (FindingArm::Size(a), FindingArm::Size(b)) => (Factor::Size, [a.to_string(), b.to_string()]),
        (FindingArm::Wpa2(a), FindingArm::Wpa2(b)) => {
            (Factor::WifiSecurity, [a, b].map(|is_wpa2| choose_security(is_wpa2).to_string()))
        }
        (FindingArm::Buffers { larger }, _) => {
            let (factor, [low, high]) =
                extremes(&[Factor::ReceiveBuffer, Factor::SendBuffer], study).ok_or_else(|| {
                    "the preset leaves the socket buffers to the kernel, which adapts their sizes; to vary them: --set \
                     'factors.receive_buffer=[65536, 212992]'"
                        .to_owned()
                })?;
            (factor, if larger { [high, low] } else { [low, high] })
        }
        (FindingArm::Mtu { smaller }, _) => {
            let (factor, [low, high]) = extremes(&[Factor::Mtu], study).ok_or_else(|| {
                "the preset has one MTU: each message has a separate packet, so that a smaller MTU would \
                 change nothing but those that no longer fit; to vary it: --set 'factors.mtu=[1280, 1500]' --set \
                 'factors.size=[128, 1152]'"
                    .to_owned()
            })?;
            (factor, if smaller { [low, high] } else { [high, low] })
        }
        (FindingArm::ClientServer(server), _) => {
            let [with, without] = find_services(study).ok_or_else(|| {
                "there is no server with services beside a pair of equals; to vary it: --set \
                 'factors.services=[\"none\", \"dns+dhcp+directory\"]'"
                    .to_owned()
            })?;
            (Factor::Services, if server { [with, without] } else { [without, with] })
        }
        _ => return Err("its two arms are not levels of one factor here".to_owned()),
    })
}

fn choose_security(is_wpa2: bool) -> Security {
    if is_wpa2 { Security::Wpa2 } else { Security::Open }
}

/// The first level with services, and the level without; `None` if the study does not have both.
fn find_services(study: &Study) -> Option<[String; 2]> {
    let with = study.cells.iter().find(|cell| !Services::of(cell).is_empty())?;
    let without = study.cells.iter().find(|cell| Services::of(cell).is_empty())?;
    Some([with, without].map(|cell| cell.level(Factor::Services)))
}

/// The lowest and highest level of the first of these factors that the study varies.
fn extremes(factors: &[Factor], study: &Study) -> Option<(Factor, [String; 2])> {
    for factor in factors {
        let texts = study.cells.iter().filter_map(|cell| cell.settings.get(*factor));
        let levels: Vec<u32> = texts.filter_map(|text| text.parse().ok()).collect();
        if let Some(low) = levels.iter().min()
            && let Some(high) = levels.iter().max()
            && low < high
        {
            return Some((*factor, [low.to_string(), high.to_string()]));
        }
    }
    None
}

/// Whether a cell meets the finding's conditions. Settings that the finding does not mention must be at their first
/// levels.
fn applies(cell: &Cell, finding: &Finding, factor: Factor, study: &Study) -> bool {
    let scope = &finding.scope;
    finding.metric.applies_to(cell.transport)
        && (factor == Factor::Transport
            || scope.transports.is_empty()
            || scope.transports.contains(&cell.transport))
        && (factor == Factor::Family || scope.family.is_none_or(|family| family == cell.family))
        && (factor == Factor::Size || scope.sizes.contains(cell.size))
        && Factor::ALL.iter().all(|other| {
            !other.is_setting() || *other == factor || has_default_level(cell, *other, finding, study)
        })
}

/// Whether a setting is at its first level, or the mechanism is the tunnel that the finding is about.
fn has_default_level(cell: &Cell, setting: Factor, finding: &Finding, study: &Study) -> bool {
    if let Some(tunnel) = finding.scope.tunnel
        && setting == Factor::Mechanism
    {
        return cell.level(setting) == tunnel.name();
    }
    study.cells.first().is_none_or(|first| first.level(setting) == cell.level(setting))
}

/// The label of the part that a cell belongs to.
fn label(cell: &Cell, finding: &Finding, factor: Factor) -> String {
    let scope = &finding.scope;
    let mut label = Vec::new();
    if factor != Factor::Transport && scope.transports.len() > 1 {
        label.push(cell.transport.to_string());
    }
    if factor != Factor::Family && scope.each_family {
        label.push(cell.family.to_string());
    }
    if factor != Factor::Size && scope.sizes.alone() {
        label.push(format!("{} B", cell.size));
    }
    label.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;
    use stacklab_campaign::sources::StudySource;
    use std::path::Path;

    #[test]
    fn every_published_study_has_a_preset_with_its_title() {
        for name in crate::STUDIES.map(|study| study.name) {
            let study = StudySource::read(Some(Path::new(name))).unwrap().check(None, &[]).unwrap();
            assert!(study.title.starts_with(name), "{}", study.title);
        }
    }

    fn of(id: &str, settings: &[&str]) -> Result<Vec<ComparedCells>, String> {
        let all = Reference::built_in().unwrap();
        let finding = all.findings.iter().find(|finding| finding.id == id).unwrap();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let source = StudySource::read(Some(Path::new(&finding.source))).unwrap();
        parts(finding, &all.of(&finding.source).limits, &source.check(None, &settings).unwrap())
    }

    fn counts(id: &str) -> Vec<(String, usize)> {
        of(id, &[]).unwrap().into_iter().map(|part| (part.label, part.pairs.len())).collect()
    }

    #[test]
    fn conditions_choose_cells_and_what_is_judged_alone() {
        assert_eq!(counts("S1"), [name_count("ipv4", 1), name_count("ipv6", 1)]);
        assert_eq!(counts("S2"), [name_count("", 3)]);
        assert_eq!(counts("S3"), [name_count("", 1)]);
        assert_eq!(counts("S7"), [name_count("", 6)]);
        assert_eq!(counts("O3"), [name_count("tcp", 1), name_count("udp", 1)]);
        assert_eq!(counts("O1"), [name_count("", 4)]);
        assert_eq!(counts("O4"), [name_count("", 13)]);
        for (a, b) in &of("O4", &[]).unwrap()[0].pairs {
            assert_eq!([a, b].map(|cell| cell.level(Factor::Mechanism)), ["6to4", "6in4"]);
        }
        assert_eq!(of("O1", &[]).unwrap()[0].pairs[0].0.level(Factor::Mechanism), "6in4");
        let sizes = ["128 B", "640 B", "896 B", "1152 B", "1408 B"].map(|size| name_count(size, 1));
        assert_eq!(counts("L2"), sizes);
        assert_eq!(counts("K3"), [name_count("", 4)]);
        for (a, b) in &of("L2", &[]).unwrap()[0].pairs {
            assert_eq!(
                (a.level(Factor::Family).as_str(), b.level(Factor::Family).as_str()),
                ("ipv4", "ipv6")
            );
        }
    }

    fn name_count(label: &str, pairs: usize) -> (String, usize) {
        (label.to_owned(), pairs)
    }

    #[test]
    fn what_is_not_here_is_said_with_what_it_needs() {
        let reason = of("O5", &[]).unwrap_err();
        assert!(reason.contains("compares systems") && reason.contains("agent for Windows"), "{reason}");
        let without = ["include=[]", "comparison=[]"];
        for (id, what, needs) in
            [("S9", "leaves the socket buffers", "factors.receive_buffer"), ("S10", "one MTU", "factors.mtu")]
        {
            let reason = of(id, &without).unwrap_err();
            assert!(reason.contains(what) && reason.contains(needs), "{id}: {reason}");
        }
    }

    #[test]
    fn wpa2_is_beside_an_open_network() {
        let parts = of("K7", &[]).unwrap();
        assert_eq!((parts.len(), parts[0].pairs.len()), (1, 12));
        for (a, b) in &parts[0].pairs {
            assert_eq!([a, b].map(|cell| cell.level(Factor::WifiSecurity)), ["open", "wpa2"]);
        }
    }

    #[test]
    fn a_server_is_a_receiver_with_services() {
        let parts = of("L3", &[]).unwrap();
        assert_eq!((parts.len(), parts[0].pairs.len()), (1, 12));
        assert_eq!(read_services(&parts[0].pairs[0]), ["none", "dns+dhcp+directory"]);
        assert_eq!(read_services(&of("L4", &[]).unwrap()[0].pairs[0]), ["dns+dhcp+directory", "none"]);
        // Findings that are not about servers are judged between equal hosts.
        assert_eq!(read_services(&of("L2", &[]).unwrap()[0].pairs[0]), ["none", "none"]);
        let reason = of("L4", &["factors.services=[\"none\"]", "comparison=[]"]).unwrap_err();
        assert!(reason.contains("no server") && reason.contains("factors.services"), "{reason}");
    }

    fn read_services(pair: &(Cell, Cell)) -> [String; 2] {
        [&pair.0, &pair.1].map(|cell| cell.level(Factor::Services))
    }

    #[test]
    fn varied_setting_is_judged_others_keep_first_level() {
        let parts = of("S9", &[]).unwrap();
        assert_eq!((parts.len(), parts[0].pairs.len()), (1, 1));
        let (smaller, larger) = &of("S10", &[]).unwrap()[0].pairs[0];
        assert_eq!([smaller, larger].map(|cell| cell.level(Factor::Mtu)), ["1280", "1500"]);
        let buffers = ["factors.receive_buffer=[65536, 212992]", "include=[]", "comparison=[]"];
        let parts = of("S9", &buffers).unwrap();
        assert_eq!(parts[0].pairs.len(), 6);
        assert_eq!(parts[0].pairs[0].0.level(Factor::ReceiveBuffer), "212992");
        assert_eq!(parts[0].pairs[0].1.level(Factor::ReceiveBuffer), "65536");
        let others = of("S2", &buffers).unwrap();
        assert_eq!(others[0].pairs.len(), 3);
        assert_eq!(others[0].pairs[0].0.level(Factor::ReceiveBuffer), "65536");
    }
}
