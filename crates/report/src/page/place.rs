//! The testbed and its hosts.

use super::document::{HostView, TestbedView};
use super::facts;
use stacklab_model::{Bed, HostFacts};

pub fn testbed(sentence: &str, bed: &Bed, hosts: &[(String, HostFacts)]) -> TestbedView {
    TestbedView {
        sentence: sentence.to_owned(),
        hosts: hosts.iter().map(|(name, facts)| host(name, facts)).collect(),
        link: vec![
            bed.rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string()),
            format!("MTU {}", bed.mtu),
            format!("offloads {}", if bed.offloads { "on" } else { "off" }),
        ],
    }
}

fn host(name: &str, host: &HostFacts) -> HostView {
    let unknown = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut told = vec![
        ("system", format!("{} {}", host.os, host.kernel)),
        ("machine", host.machine.clone()),
        ("processor", format!("{}, {} online", host.cpu_model, host.cores)),
        ("memory", format!("{:.1} GiB", host.memory_kib as f64 / f64::from(1 << 20))),
        ("governor", unknown(&host.governor)),
        ("clock source", unknown(&host.clock_source)),
        ("virtualised", if host.virtualised { "yes" } else { "no" }.to_owned()),
        ("agent", format!("stacklab {}", host.agent_version)),
    ];
    if let Some(noise) = &host.noise {
        told.push(("noise floor", noise.to_string()));
    }
    HostView {
        name: name.to_owned(),
        system: format!("{} {}", host.os, host.kernel),
        facts: facts(told),
        abilities: facts(host.abilities.iter().map(|(name, text)| (name.clone(), text.clone()))),
    }
}
