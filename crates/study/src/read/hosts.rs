//! Real machines, and the requirements that a study's systems set for the rest of it.

use super::factors::Factors;
use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{At, at};
use crate::study::RealHost;
use stacklab_model::{Factor, Family, System, Systems, Topology};

/// Factors that change the two ends of a link, which the program can do between trials only on the machine's own
/// kernel; and services, which run in addition to the agents.
const OF_NAMESPACES: [Factor; 4] = [Factor::Mtu, Factor::QueueLength, Factor::Pinning, Factor::Services];

/// Reads the real machines, and checks that each one's addresses are known. Behind routers there are none, which is
/// said with the rest of them (`mechanisms.rs`).
pub(super) fn read(
    node: Option<&Located>,
    topology: Option<&At<Topology>>,
    all: &[Factors],
    problems: &mut Problems,
) -> Vec<RealHost> {
    let mut hosts = Vec::new();
    for item in node.map_or(&[][..], |node| node.items()) {
        let Some(os) = at(item.get("os"), leaf::systems, problems) else { continue };
        let text = |name| at(item.get(name), leaf::text, problems).map(|text: At<String>| text.value);
        let address = |family: Family| {
            let read = |node: &Located| leaf::address(node, family);
            Some((family, at(item.get(family.name()), read, problems)?.value))
        };
        let host = RealHost {
            system: match os.value.parse() {
                Ok(system @ (System::Localhost | System::Ssh(_))) => system,
                _ => {
                    let label = "expected \"ssh:USER@HOST\" or \"localhost\"";
                    problems.add(Problem::at(
                        os.place,
                        format!("`{}` is not a real machine", os.value),
                        label,
                    ));
                    continue;
                }
            },
            interface: text("interface"),
            addresses: Family::ALL.iter().copied().filter_map(address).collect(),
        };
        hosts.push(host);
    }
    if topology.is_none_or(|topology| topology.value == Topology::Link) {
        all.iter().for_each(|factors| check(&hosts, factors, problems));
    }
    hosts
}

fn check(hosts: &[RealHost], factors: &Factors, problems: &mut Problems) {
    let Some(setting) = factors.setting(Factor::Os) else { return };
    for level in &setting.levels {
        let Ok(Systems([sender, receiver])) = level.value.parse() else { continue };
        if sender.is_built() != receiver.is_built() {
            problems.add(
                Problem::at(
                    level.place.clone(),
                    format!("`{sender}` and `{receiver}` share no network"),
                    "one is built for the study, the other is a real machine",
                )
                .help("pair \"localhost\" with an ssh: host"),
            );
        }
        for system in [&sender, &receiver].into_iter().filter(|system| !system.is_built()) {
            let known = hosts.iter().find(|host| host.system == *system);
            for family in &factors.family {
                let reached =
                    known.is_some_and(|h| h.interface.is_some() || h.addresses.contains_key(&family.value));
                if !reached {
                    problems.add(
                        Problem::at(
                            level.place.clone(),
                            format!("the {} address of `{system}` is unknown", family.value),
                            "which of its addresses is to be used?",
                        )
                        .related(family.place.clone(), "needed for this")
                        .help(format!(
                            "add: [[host]] os = \"{system}\" and {} = \"..\", or interface = \"..\"",
                            family.value
                        )),
                    );
                }
            }
        }
        let plain = [&sender, &receiver].iter().all(|system| **system == System::Namespace);
        for factor in OF_NAMESPACES.iter().filter(|_| !plain) {
            let Some(varied) = factors.setting_levels(*factor).first() else { continue };
            problems.add(
                Problem::at(
                    varied.place.clone(),
                    format!("`{factor}` can be set between namespaces only"),
                    "not possible here",
                )
                .related(level.place.clone(), "together with this system")
                .help(match factor {
                    Factor::Services => "leave the factor out",
                    _ => "leave the factor out; testbed.mtu holds for every system",
                }),
            );
        }
    }
}
