//! Differences between the environments of two campaigns: hosts, testbed and probe settings.

use crate::findings::campaign::Campaign;
use stacklab_model::{Apart, HostFacts, Probe, ProbeSpec, print_duration};

/// Every difference, hosts first. Equal facts are left out, and so are facts that do not describe the environment (boot
/// identifiers, seeds).
pub(super) fn differences(a: &Campaign, b: &Campaign) -> Vec<Apart> {
    let [of_a, of_b] = [a, b].map(facts);
    let rows = of_a.into_iter().zip(of_b);
    let mut found: Vec<Apart> = rows.filter_map(|((what, a), (_, b))| apart(what, a, b)).collect();
    let ways: [fn(&ProbeSpec) -> String; 3] = [
        |spec| spec.pacing.to_string(),
        |spec| spec.length.to_string(),
        |spec| print_duration(spec.warmup_ns),
    ];
    for probe in Probe::ALL {
        let of = |campaign: &Campaign| campaign.probes.iter().find(|spec| spec.probe == *probe).cloned();
        // A probe that only one campaign has shows in its metrics.
        let (Some(a), Some(b)) = (of(a), of(b)) else { continue };
        for (what, way) in ["pacing", "length", "warmup"].into_iter().zip(ways) {
            found.extend(apart(&format!("probe.{probe}.{what}"), way(&a), way(&b)));
        }
    }
    found
}

fn apart(what: &str, a: String, b: String) -> Option<Apart> {
    (a != b).then(|| Apart { what: what.to_owned(), a, b })
}

/// Printed for a fact that a host does not report.
const UNKNOWN: &str = "unknown";

fn facts(campaign: &Campaign) -> Vec<(&'static str, String)> {
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
mod tests {
    use super::*;
    use stacklab_model::{Length, Pacing};

    fn host(kernel: &str) -> HostFacts {
        HostFacts {
            agent_version: "0.1.0".into(),
            os: "Linux".into(),
            kernel: kernel.into(),
            machine: "x86_64".into(),
            cpu_model: "Example 9000".into(),
            cores: 2,
            memory_kib: 4 << 20,
            governor: None,
            clock_source: Some("tsc".into()),
            boot_id: Some(kernel.into()),
            time_namespace: None,
            virtualised: true,
            abilities: Default::default(),
            noise: None,
        }
    }

    #[test]
    fn hosts_that_agree_are_told_once_and_others_by_name() {
        let hosts = |second| [("left".to_owned(), host("6.1")), ("right".to_owned(), host(second))];
        let kernel = |facts: &HostFacts| facts.kernel.clone();
        assert_eq!(by_host(&hosts("6.1"), kernel), "6.1");
        assert_eq!(by_host(&hosts("6.12"), kernel), "left: 6.1, right: 6.12");
        assert_eq!(by_host(&[], kernel), "unknown");
    }

    #[test]
    fn a_probes_ways_are_told_with_their_units() {
        assert_eq!(
            (
                Pacing::Schedule(500.0).to_string(),
                Length::Packets(10).to_string(),
                Length::Time(2_000_000).to_string()
            ),
            ("500 messages/s".to_owned(), "10 messages".to_owned(), "2 ms".to_owned())
        );
    }
}
