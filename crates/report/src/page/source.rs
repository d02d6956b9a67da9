//! What a page is made from, and the testbed on it.

use crate::page::document::{DrawingView, DrawnHost, HostView, LinkView, RunDetail, TestbedView, facts};
use stacklab_model::{Cell, Findings, HostFacts, LimitedBy, LinkConfig, Links, Metric, OwnLink, RunRecord};

/// The input of a page.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "their names say what they are")]
pub struct PageSource<'a> {
    pub findings: &'a Findings,
    pub link_config: &'a LinkConfig,
    pub hosts: &'a [(String, HostFacts)],
    /// The kind of each host, in the same order.
    pub kinds: &'a [String],
    /// How they are connected.
    pub rows: &'a [TestbedDrawing],
    pub runs: &'a [RunRecord],
    /// The maximum that the testbed carries: cell, metric, and figure in the metric's unit.
    pub limits: &'a [(Cell, Metric, f64)],
    /// Which model has it.
    pub limited_by: LimitedBy,
    pub published: &'a [Published],
    pub details: &'a [RunDetail],
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The transport's name, if the figures are of one transport.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures in the unit that reports show.
    pub points: Vec<(f64, f64)>,
}

/// Hosts and the links between them, as drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestbedDrawing {
    /// Their names, in the order of the traffic.
    pub names: Vec<String>,
    /// How packets cross the middle link, if there is one.
    pub mechanisms: Vec<String>,
    /// The properties of each link, if there are three.
    pub links: Links,
    /// The properties of the radio channel that all hosts share, if there is one.
    pub channel: Vec<String>,
}

pub(super) fn build_testbed_view(sentence: &str, source: &PageSource) -> TestbedView {
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
    let mut drawn = Vec::new();
    for name in &row.names {
        // A resumed campaign may have several entries for a host: the last one counts.
        let last = hosts.iter().rfind(|host| host.name == *name);
        let system = last.map(|host| host.system.clone()).unwrap_or_default();
        drawn.push(DrawnHost { name: name.clone(), system });
    }
    let links = if !row.channel.is_empty() {
        vec![LinkView { mechanisms: vec![], facts: row.channel.clone() }; row.names.len() - 1]
    } else if row.names.len() == 4 {
        let mut links = Vec::new();
        for (name, own) in row.links.all() {
            let mechanisms = if name == "middle" { row.mechanisms.clone() } else { vec![] };
            links.push(LinkView { mechanisms, facts: describe_link(&own, link_config) });
        }
        links
    } else {
        vec![LinkView { mechanisms: vec![], facts: describe_link(&OwnLink::default(), link_config) }]
    };
    DrawingView { hosts: drawn, links }
}

fn describe_link(own: &OwnLink, link_config: &LinkConfig) -> Vec<String> {
    let LinkConfig { rate, mtu, offloads } = own.of(link_config);
    let every = [
        rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string()),
        format!("MTU {mtu}"),
        format!("offloads {}", if offloads { "on" } else { "off" }),
    ];
    own.impairments().into_iter().chain(every).collect()
}

fn host(name: &str, kind: &str, host: &HostFacts) -> HostView {
    let mut rows = vec![
        ("system", format!("{} {}", host.os, host.kernel)),
        ("machine", host.machine.clone()),
        ("processor", format!("{}, {} online", host.cpu_model, host.cores)),
        ("memory", format!("{:.1} GiB", host.memory_kib as f64 / f64::from(1 << 20))),
        ("governor", host.governor.as_deref().unwrap_or("unknown").to_owned()),
        ("clock source", host.clock_source.as_deref().unwrap_or("unknown").to_owned()),
        ("virtualised", if host.virtualised { "yes" } else { "no" }.to_owned()),
        ("agent", format!("stacklab {}", host.agent_version)),
    ];
    if let Some(quota) = host.cpu_quota {
        rows.push(("CPU quota", format!("{:.1} processors", quota.processors())));
    }
    if !host.kept_settings.is_empty() {
        rows.push(("settings not made", host.kept_settings.join(", ")));
    }
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
