//! Real machines, and the requirements that a study's systems set for the rest of it.

use crate::diagnostics::Problems;
use crate::language::leaf;
use crate::read::factors::Factors;
use crate::read::{At, Node};
use crate::study::RealHost;
use stacklab_model::{Factor, Family, System, Systems};
use std::collections::BTreeMap;

/// Factors that change the two ends of a link, which the program can do between trials only on the machine's own
/// kernel; and services, which run in addition to the agents.
const OF_NAMESPACES: [Factor; 4] = [Factor::Mtu, Factor::QueueLength, Factor::Pinning, Factor::Services];

/// Reads the real machines, and checks that each one's addresses are known, if the two hosts have one link. Behind
/// routers there are none, which is said with the rest of them (`mechanisms.rs`).
pub(super) fn read(node: Node, on_one_link: bool, all: &[Factors], problems: &mut Problems) -> Vec<RealHost> {
    let mut hosts = Vec::new();
    for item in node.items() {
        let Some(os) = item.get("os").at(leaf::systems, problems) else { continue };
        let Ok(system @ (System::Localhost | System::Ssh(_))) = os.value.parse() else {
            let title = format!("`{}` is not a real machine", os.value);
            problems.add(os.problem(title, "expected \"ssh:USER@HOST\" or \"localhost\""));
            continue;
        };
        let mut addresses = BTreeMap::new();
        for family in Family::ALL.iter().copied() {
            let address = item.get(family.name()).value(|node| leaf::address(node, family), problems);
            addresses.extend(address.map(|address| (family, address)));
        }
        let interface = item.get("interface").value(leaf::text, problems);
        hosts.push(RealHost { system, interface, addresses });
    }
    if on_one_link {
        all.iter().for_each(|factors| check(&hosts, factors, problems));
    }
    hosts
}

fn check(hosts: &[RealHost], factors: &Factors, problems: &mut Problems) {
    for level in factors.setting_levels(Factor::Os) {
        let Ok(Systems([sender, receiver])) = level.value.parse() else { continue };
        if sender.is_built() != receiver.is_built() {
            let title = format!("`{sender}` and `{receiver}` share no network");
            problems.add(
                level
                    .problem(title, "one is built for the study, the other is a real machine")
                    .help("pair \"localhost\" with an ssh: host"),
            );
        }
        for system in [&sender, &receiver].into_iter().filter(|system| !system.is_built()) {
            let known = hosts.iter().find(|host| host.system == *system);
            for At { value: name, place } in &factors.family {
                if known.is_some_and(|host| host.interface.is_some() || host.addresses.contains_key(name)) {
                    continue;
                }
                let title = format!("the {name} address of `{system}` is unknown");
                let problem = level.problem(title, "which of its addresses is to be used?");
                problems.add(problem.with_related_place(place, "needed for this").help(format!(
                    "add: [[host]] os = \"{system}\" and {name} = \"..\", or interface = \"..\""
                )));
            }
        }
        let plain = [&sender, &receiver].iter().all(|system| **system == System::Namespace);
        for factor in OF_NAMESPACES.iter().filter(|_| !plain) {
            let Some(varied) = factors.setting_levels(*factor).first() else { continue };
            let title = format!("`{factor}` can be set between namespaces only");
            let problem = varied.problem(title, "not possible here");
            problems.add(problem.with_related_place(&level.place, "together with this system").help(
                match factor {
                    Factor::Services => "leave the factor out",
                    _ => "leave the factor out; testbed.mtu holds for every system",
                },
            ));
        }
    }
}
