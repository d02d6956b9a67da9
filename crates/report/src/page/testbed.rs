//! The testbed and its hosts.

use crate::page::document::{DrawingView, DrawnHost, HostView, LinkView, TestbedView};
use crate::page::facts;
use crate::page::{PageSource, TestbedDrawing};
use stacklab_model::{HostFacts, LinkConfig, OwnLink};

pub(super) fn testbed(sentence: &str, source: &PageSource) -> TestbedView {
    let kinds = source.kinds.iter().map(String::as_str).chain(std::iter::repeat(""));
    let hosts: Vec<HostView> =
        source.hosts.iter().zip(kinds).map(|((name, facts), kind)| host(name, kind, facts)).collect();
    TestbedView {
        sentence: sentence.to_owned(),
        rows: source.rows.iter().map(|one| row(one, source.link_config, &hosts)).collect(),
        hosts,
    }
}

fn row(row: &TestbedDrawing, link_config: &LinkConfig, hosts: &[HostView]) -> DrawingView {
    let place = |name: &String| DrawnHost {
        name: name.clone(),
        // A resumed campaign may have several entries for a host: the last one counts.
        system: hosts
            .iter()
            .rfind(|host| host.name == *name)
            .map_or_else(String::new, |host| host.system.clone()),
    };
    let facts = |own: &OwnLink| {
        let LinkConfig { rate, mtu, offloads } = own.of(link_config);
        let every = [
            rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string()),
            format!("MTU {mtu}"),
            format!("offloads {}", if offloads { "on" } else { "off" }),
        ];
        own.impairments().into_iter().chain(every).collect()
    };
    let links = if !row.channel.is_empty() {
        vec![LinkView { mechanisms: vec![], facts: row.channel.clone() }; row.names.len() - 1]
    } else if row.names.len() == 4 {
        row.links
            .all()
            .map(|(name, own)| {
                let mechanisms = if name == "middle" { row.mechanisms.clone() } else { vec![] };
                LinkView { mechanisms, facts: facts(&own) }
            })
            .to_vec()
    } else {
        vec![LinkView { mechanisms: vec![], facts: facts(&OwnLink::default()) }]
    };
    DrawingView { hosts: row.names.iter().map(place).collect(), links }
}

fn host(name: &str, kind: &str, host: &HostFacts) -> HostView {
    let unknown = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut rows = vec![
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
        rows.push(("noise floor", noise.to_string()));
    }
    HostView {
        name: name.to_owned(),
        kind: kind.to_owned(),
        system: format!("{} {}", host.os, host.kernel),
        facts: facts(rows),
        abilities: facts(host.abilities.iter().map(|(name, text)| (name.clone(), text.clone()))),
    }
}
