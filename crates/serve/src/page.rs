//! Builds the document that the page shows from a record.

use crate::{ServeError, other};
use serde::Serialize;
use stacklab_analysis::{findings, limit};
use stacklab_campaign::record::Recorded;
use stacklab_campaign::rig::{ACCESS_POINT, names, router_name};
use stacklab_campaign::runs::{read_runs, with_reports};
use stacklab_model::wifi::WifiConfig;
use stacklab_model::{
    LimitedBy, Links, Metric, RoutedKind, RunRecord, RunStatus, Services, Systems, Topology, once_each,
};
use stacklab_published::replication::published_name;
use stacklab_published::{PublishedFigure, Reference};
use stacklab_report::page::{
    Detailed, Page, PageSource, Published, RunDetail, TestbedDrawing, detail, page, tool_end,
};
use stacklab_store::Record;
use stacklab_study::Study;
use stacklab_testbed::Node;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Maximum JSON size of a document in one file: with the page's script and style, the file stays below a megabyte.
pub const ROOM: usize = 880_000;
/// Maximum JSON size of the details of runs in it.
const MAX_DETAILS: usize = 400_000;
/// Consecutive runs that do not fit, after which the document counts as full.
const MAX_MISSES: usize = 20;

/// The document of a record, at most this many bytes of JSON. Includes the details of as many runs as fit, possibly
/// none.
pub fn document(record: &Record, room: usize) -> Result<Page, ServeError> {
    let recorded = Recorded::read(record)?;
    let campaign = recorded.campaign();
    let findings = findings(&campaign);
    let mut limits = Vec::new();
    for cell in campaign.cells {
        for metric in campaign.probes.iter().flat_map(|probe| &probe.metrics) {
            if let Some(most) = limit(cell, *metric, campaign.topology, campaign.link_config) {
                limits.push((cell.clone(), *metric, most));
            }
        }
    }
    let mut document = page(&PageSource {
        findings: &findings,
        link_config: campaign.link_config,
        hosts: campaign.hosts,
        kinds: &recorded.kinds,
        rows: &draw_testbeds(&recorded.study),
        runs: campaign.runs,
        limits: &limits,
        limited_by: LimitedBy::of(campaign.topology),
        published: &read_published_figures(&recorded.request.study_name)?,
        details: &[],
    });
    let filled = if room > 0 { bytes(&document) } else { 0 };
    document.details = details(record, campaign.runs, room.saturating_sub(filled).min(MAX_DETAILS))?;
    Ok(document)
}

/// The host reports of one run; `None` if the record has no such run.
pub fn run_detail(record: &Record, block: u32, position: u32) -> Result<Option<RunDetail>, ServeError> {
    let runs = read_runs(record)?;
    let asked = runs.iter().find(|run| run.trial.block == block && run.trial.position == position);
    let Some(run) = asked else { return Ok(None) };
    let whole = with_reports(record, run.clone())?;
    detail_of(record, &whole, &runs, Detailed::Fully).map(Some)
}

/// The details of a run with its host reports; of an imported one, which has none, its intervals.
fn detail_of(
    record: &Record,
    whole: &RunRecord,
    runs: &[RunRecord],
    detailed: Detailed,
) -> Result<RunDetail, ServeError> {
    let mut detail = detail(whole, &beside(record, runs, whole)?, detailed);
    if let Some(series) = record.tool_series(&whole.trial)? {
        detail.ends.push(tool_end(&series));
    }
    Ok(detail)
}

/// The other arms of an interleaved run's trial, which began with it.
fn beside(record: &Record, runs: &[RunRecord], run: &RunRecord) -> Result<Vec<RunRecord>, ServeError> {
    if run.spec.schedule.is_alone() {
        return Ok(Vec::new());
    }
    let others = runs.iter().filter(|other| {
        other.trial.block == run.trial.block
            && other.started_unix_ns == run.started_unix_ns
            && other.trial.position != run.trial.position
    });
    others.map(|other| Ok(with_reports(record, other.clone())?)).collect()
}

/// The details of as many runs as fit: first the invalid runs, then block by block, so that every cell has some
/// before any has many.
fn details(record: &Record, runs: &[RunRecord], room: usize) -> Result<Vec<RunDetail>, ServeError> {
    let mut wanted: Vec<&RunRecord> = runs.iter().collect();
    // A few invalid runs of each kind are enough to show the reason.
    let mut shown: HashMap<&str, usize> = HashMap::new();
    wanted.sort_by_cached_key(|run| {
        let reason = match &run.status {
            RunStatus::Invalid(reasons) => reasons.first().map(String::as_str),
            RunStatus::Valid => None,
        };
        let rank = reason.map(|reason| {
            let seen = shown.entry(reason).or_default();
            *seen += 1;
            *seen
        });
        (rank.is_none_or(|rank| rank > 3), run.trial.block, run.trial.position)
    });
    let mut details = fill(wanted, room, |run, shown| {
        let whole = with_reports(record, run.clone())?;
        let detailed = if shown < 24 { Detailed::Fully } else { Detailed::Briefly };
        let detail = detail_of(record, &whole, runs, detailed)?;
        let bytes = bytes(&detail);
        Ok((detail, bytes))
    })?;
    details.sort_by_key(|detail| (detail.block, detail.position));
    Ok(details)
}

fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

/// Makes as many items as fit, in order. An item that is too large for the remaining space is skipped.
fn fill<T, D>(
    wanted: Vec<T>,
    room: usize,
    mut make: impl FnMut(T, usize) -> Result<(D, usize), ServeError>,
) -> Result<Vec<D>, ServeError> {
    let mut made = Vec::new();
    let mut left = room;
    let mut misses = 0;
    for one in wanted {
        if left == 0 || misses == MAX_MISSES {
            break;
        }
        let (detail, bytes) = make(one, made.len())?;
        if bytes > left {
            misses += 1;
            continue;
        }
        misses = 0;
        left -= bytes;
        made.push(detail);
    }
    Ok(made)
}

/// Published figures by size, one series for each place and system; empty if the study is not a published one.
fn read_published_figures(study_name: &str) -> Result<Vec<Published>, ServeError> {
    let study = Path::new(study_name).file_stem().unwrap_or_default().to_string_lossy();
    // Of no study of this name there are no tables to read.
    if stacklab_published::study(&study).is_err() {
        return Ok(Vec::new());
    }
    let own = Reference::built_in().map_err(other)?.of(&study);
    let mut series: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    for figure in &own.figures {
        let (Some(metric), Ok(size)) = (metric_of(figure), figure.size.parse::<u32>()) else { continue };
        let transport = (figure.transport != "both").then(|| figure.transport.clone());
        let points = series.entry((metric, transport, label_of(figure))).or_default();
        points.push((f64::from(size), figure.value.value));
    }
    let published = series.into_iter().map(|((metric, transport, label), mut points)| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Published { label, metric, transport, points }
    });
    Ok(published.collect())
}

/// The metric of a figure, if both have the same unit: published CPU times are shares of a whole machine.
fn metric_of(figure: &PublishedFigure) -> Option<Metric> {
    let mut all = Metric::ALL.iter().copied();
    all.find(|metric| published_name(*metric) == figure.metric && metric.unit().symbol() == figure.unit)
}

/// `Ubuntu, 6in4, configured-tunnel (Figure 7)`.
fn label_of(figure: &PublishedFigure) -> String {
    let mechanism = if figure.mechanism == "none" { "" } else { figure.mechanism.as_str() };
    let parts = [figure.os.as_str(), figure.ip.as_str(), mechanism];
    let named: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} ({})", named.join(", "), figure.location)
}

/// A row for each pair of systems and set of services, or for each Wi-Fi network. With routers, one row for all
/// mechanisms, which have the same hosts.
fn draw_testbeds(study: &Study) -> Vec<TestbedDrawing> {
    match study.topology {
        Topology::Wifi(_) => study.networks().iter().map(draw_wifi).collect(),
        Topology::Routed(links) => draw_routed_testbeds(study, links),
        _ => {
            let pairs = study.labs();
            let named = pairs.iter().map(|(systems, services)| names(systems, services).to_vec());
            named.map(|names| TestbedDrawing { names, ..TestbedDrawing::default() }).collect()
        }
    }
}

fn draw_wifi(network: &WifiConfig) -> TestbedDrawing {
    let [sender, receiver] = names(&Systems::NAMESPACES, &Services::default());
    let names = vec![sender, ACCESS_POINT.to_owned(), receiver];
    TestbedDrawing { names, channel: network.facts(), ..TestbedDrawing::default() }
}

fn draw_routed_testbeds(study: &Study, links: Links) -> Vec<TestbedDrawing> {
    let mechanisms: Vec<String> = study.mechanisms().iter().map(ToString::to_string).collect();
    let rows = study.rows().into_iter();
    let hosts = once_each(rows.map(|RoutedKind { clients, routers, .. }| (clients, routers)));
    let mut drawings = Vec::new();
    for (clients, routers) in hosts {
        let [sender, receiver] = names(&clients, &Services::default());
        let [one, other] = [Node::Router1, Node::Router2].map(|node| router_name(node, &routers));
        let names = vec![sender, one, other, receiver];
        let mechanisms = mechanisms.clone();
        drawings.push(TestbedDrawing { names, mechanisms, links, ..TestbedDrawing::default() });
    }
    drawings
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_study::{Input, parse};

    #[test]
    fn too_large_items_leave_room_and_no_room_makes_none() {
        let none =
            fill(vec![1], 0, |_, _| -> Result<((), usize), ServeError> { panic!("nothing is asked for") });
        assert!(none.unwrap().is_empty());
        assert_eq!(fill_with_sizes(vec![40, 101, 30, 31, 30, 1]), [40, 30, 30]);
        // After MAX_MISSES consecutive items that are too large, the rest is skipped.
        assert_eq!(fill_with_sizes([vec![90], vec![50; MAX_MISSES], vec![1]].concat()), [90]);
    }

    fn fill_with_sizes(sizes: Vec<usize>) -> Vec<usize> {
        fill(sizes, 100, |size, _| Ok((size, size))).unwrap()
    }

    #[test]
    fn figures_of_a_published_study_stand_by_size() {
        let series = read_published_figures("ogunleye2016.toml").unwrap();
        let of_figure_7 = series.iter().find(|one| one.label == "Ubuntu, 6in4, configured-tunnel (Figure 7)");
        let series_7 = of_figure_7.unwrap();
        assert_eq!(series_7.transport.as_deref(), Some("tcp"));
        assert_eq!(series_7.points[0], (64.0, 50.93));
        assert!(series_7.points.is_sorted_by(|a, b| a.0 < b.0));
        assert!(read_published_figures("quickstart.toml").unwrap().is_empty());
    }

    fn rows(text: &str) -> Vec<TestbedDrawing> {
        draw_testbeds(&parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}")))
    }

    #[test]
    fn every_system_has_a_row_of_two_hosts() {
        let rows = rows(include_str!("../../../studies/stacks.toml"));
        let names: Vec<String> = rows.iter().map(|row| row.names.join(" - ")).collect();
        assert_eq!(
            names,
            [
                "sender - receiver",
                "sender (smoltcp) - receiver (smoltcp)",
                "sender (gvisor) - receiver (gvisor)",
                "sender (linux-6.1) - receiver (linux-6.1)",
                "sender (linux-6.12) - receiver (linux-6.12)"
            ]
        );
        assert!(
            rows.iter().all(|row| row.mechanisms.is_empty() && row.links == Links::default()),
            "{rows:?}"
        );
    }

    #[test]
    fn routers_stand_between_ends_once_for_all_mechanisms() {
        let study = include_str!("../../../studies/mechanisms.toml");
        let plain = rows(study);
        assert_eq!(plain.len(), 1, "{plain:?}");
        assert_eq!(plain[0].names, ["sender", "router1", "router2", "receiver"]);
        // Each mechanism once, in the order of the cells.
        assert_eq!(plain[0].mechanisms.len(), 13);
        assert_eq!(plain[0].mechanisms[0], "native");
        assert!(
            ["6in4", "wireguard6"].iter().all(|one| plain[0].mechanisms.iter().any(|known| known == one))
        );
        assert_eq!(plain[0].links, Links::default());
        let far = rows(
            &study
                .replace("topology = \"routed\"", "topology = \"routed\"\ndelay = \"5ms\"\nloss = \"0.1 %\""),
        );
        assert_eq!(far[0].links.middle.impairments(), ["delay 5 ms", "loss 0.1 %"]);
        let others =
            rows(&study.replace("[factors]", "[factors]\nrouter_os = [\"namespace\", \"uml -> linux-6.1\"]"));
        assert_eq!(others.len(), 2, "{others:?}");
        assert_eq!(others[1].names, ["sender", "router1 (uml)", "router2 (linux-6.1)", "receiver"]);
    }

    #[test]
    fn access_point_stands_between_stations_per_network() {
        let study = include_str!("../../../studies/quickstart.toml")
            .replace("[testbed]", "[testbed]\ntopology = \"wifi\"")
            .replace("[factors]", "[factors]\nwifi.security = [\"open\", \"wpa2\"]");
        let rows = rows(&study);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| row.names == ["sender", "access point", "receiver"]));
        let security = rows.iter().map(|row| row.channel[5].as_str());
        assert!(security.eq(["security open", "security wpa2"]), "{rows:?}");
    }
}
