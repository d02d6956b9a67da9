//! The document of the fixtures' campaign.

use super::{
    ComparisonView, Detailed, EndView, HistogramView, Outcome, Page, PageSource, Published, SeriesView,
    TestbedDrawing, build_comparison_page, detail, html, page,
};
use crate::records::tests::found;
use crate::tests::fixtures::{cell, findings};
use stacklab_model::{
    Buckets, CpuScope, CpuTime, Delays, Endpoint, Family, Findings, HostFacts, HostReport, IntervalRow,
    Length, LimitedBy, LinkConfig, Links, Metric, Offloads, OwnLink, Pacing, Probe, ProbeSpec, Rate, Role,
    RunRecord, RunStatus, Slice, Transport, Trial, TrialSpec, Value, Values, Warning,
};
use std::net::SocketAddr;

const MS: u64 = 1_000_000;

fn host(system: &str) -> HostFacts {
    HostFacts {
        agent_version: "0.1.0".to_owned(),
        os: "Linux".to_owned(),
        kernel: system.to_owned(),
        machine: "x86_64".to_owned(),
        cpu_model: "Example 9000".to_owned(),
        cores: 2,
        memory_kib: 4 << 20,
        governor: None,
        clock_source: Some("tsc".to_owned()),
        boot_id: None,
        time_namespace: None,
        virtualised: true,
        abilities: [("udp_gro".to_owned(), "yes".to_owned())].into(),
        noise: None,
        cpu_quota: None,
        kept_settings: Vec::new(),
        machine_name: None,
    }
}

/// The receiver of a stream of TCP over IPv4 with delays from 10 µs to 10 ms.
fn receiver() -> HostReport {
    let address = SocketAddr::new(Family::Ipv4.loopback(), 1000);
    let endpoint = Endpoint {
        family: Family::Ipv4,
        transport: Transport::Tcp,
        local: address,
        peer: address,
        interface: "veth0".to_owned(),
        interface_mtu: 1500,
        path_mtu: Some(1500),
        offloads: Offloads::default(),
        congestion_control: Some("cubic".to_owned()),
        options: Default::default(),
    };
    let mut side = HostReport::new(Role::Receiver, endpoint);
    side.counters.0.insert("tcp.InSegs".to_owned(), 7);
    side.series = (0..3)
        .map(|i| IntervalRow { start_ns: i * 10 * MS, messages: 10, bytes: 12_500, delay_mean_ns: Some(2e6) })
        .collect();
    let buckets = Buckets(vec![(10_000, 50), (100_000, 40), (1_000_000, 9), (10_000_000, 1)]);
    side.delays = Some(Delays { buckets, mean_ns: 235_000.0, jitter_ns: None, jitter_rfc3550_ns: None });
    side.cpu = Some(CpuTime {
        scope: CpuScope::Shared,
        source: None,
        window_ns: 100 * MS,
        user_ns: 10 * MS,
        system_ns: 30 * MS,
        irq_ns: 0,
        softirq_ns: 20 * MS,
        idle_ns: 140 * MS,
        steal_ns: 0,
        own_user_ns: 0,
        own_system_ns: 0,
        undivided: false,
    });
    side
}

/// That stream, with a warning.
pub(crate) fn run(block: u32, status: RunStatus) -> RunRecord {
    let cell = cell(Transport::Tcp, Family::Ipv4, 128);
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing: Pacing::Flood,
        length: Length::Time(100 * MS),
        warmup_ns: 20 * MS,
        interval_ns: 10 * MS,
        metrics: vec![Metric::Throughput],
    };
    RunRecord {
        spec: TrialSpec::new(1, &cell, probe),
        trial: Trial { block, position: 0, cell, probe: Probe::Stream },
        started_unix_ns: findings().started_unix_ns + 2_500 * MS,
        wall_ns: 150 * MS,
        status,
        values: Values::from_iter([
            (Metric::Throughput, Value::Measured(57.312_345_678)),
            (Metric::Retransmits, Value::Missing("no TCP_INFO".to_owned())),
        ]),
        drops: Default::default(),
        host_reports: vec![receiver()],
        warnings: vec![Warning {
            code: "tick".to_owned(),
            text: "9 ticks".to_owned(),
            advice: "measure for longer".to_owned(),
        }],
    }
}

pub(crate) fn of(findings: &Findings) -> Page {
    let runs = [
        run(0, RunStatus::Valid),
        run(1, RunStatus::Invalid(vec!["planned MTU 1500, observed 1280".to_owned()])),
    ];
    let details: Vec<_> = runs.iter().map(|run| detail(run, &[], Detailed::Fully)).collect();
    let limits =
        [64, 128, 1408].map(|size| (cell(Transport::Tcp, Family::Ipv4, size), Metric::Throughput, 58.716));
    page(&PageSource {
        findings,
        link_config: &LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false },
        hosts: &[("sender".to_owned(), host("6.12.0")), ("receiver".to_owned(), host("6.12.0"))],
        kinds: &["namespace".to_owned(), "namespace".to_owned()],
        rows: &[TestbedDrawing {
            names: vec!["sender".to_owned(), "receiver".to_owned()],
            ..TestbedDrawing::default()
        }],
        runs: &runs,
        limits: &limits,
        limited_by: LimitedBy::Headers,
        published: &[
            Published {
                label: "Ubuntu (Figure 7)".to_owned(),
                metric: Metric::Throughput,
                transport: Some("tcp".to_owned()),
                points: vec![(128.0, 81.58)],
            },
            Published {
                label: "of a metric that was not taken".to_owned(),
                metric: Metric::Jitter,
                transport: None,
                points: vec![],
            },
        ],
        details: &details,
    })
}

/// The fixtures' campaign.
pub(crate) fn document() -> Page {
    of(&findings())
}

#[test]
fn a_verdict_is_told_by_arm_strength_and_words() {
    let page = document();
    let tcp = find_comparison(&page, "throughput", 128);
    assert_eq!((tcp.outcome, tcp.strength, tcp.words.as_str()), (Outcome::Baseline, 2, "IPv4 better"));
    assert_eq!(tcp.arms, "IPv6 vs IPv4");
    assert!((tcp.difference.unwrap() + 8.43).abs() < 1e-9, "{tcp:?}");
    assert_eq!((tcp.pairs, tcp.adjusted_p.as_deref()), (8, Some("0.002")));
    assert!(tcp.headers.as_ref().unwrap().starts_with("headers explain -8.4"), "{tcp:?}");
    let large = find_comparison(&page, "throughput", 1408);
    assert_eq!((large.outcome, large.strength), (Outcome::Equivalent, 0));
    let loss = find_comparison(&page, "loss", 128);
    assert!((loss.difference.unwrap() - 2.15).abs() < 1e-9 && loss.strength == 3, "{loss:?}");
    let nothing = find_comparison(&page, "loss", 1408);
    assert_eq!(nothing.outcome, Outcome::Nothing);
    assert_eq!(nothing.reason.as_deref(), Some("ipv6: the stack does not report it"));
}

fn find_comparison<'a>(page: &'a Page, metric: &str, size: u32) -> &'a ComparisonView {
    let mut of_metric = page.comparisons.iter().filter(|view| page.metrics[view.metric].name == metric);
    let size = format!(" {size} B");
    of_metric.find(|view| page.cells[view.baseline].label.contains(&size)).unwrap()
}

#[test]
fn matrix_and_sentences_name_comparisons_by_number() {
    let page = document();
    assert_eq!(page.matrix.columns, [64, 128, 1408]);
    let named: Vec<usize> =
        page.matrix.rows.iter().flat_map(|row| row.cells.iter().flatten()).copied().collect();
    assert_eq!(named.len(), page.comparisons.len());
    for row in &page.matrix.rows {
        for (size, place) in page.matrix.columns.iter().zip(&row.cells) {
            let Some(place) = place else { continue };
            let comparison = &page.comparisons[*place];
            let metric: Metric = page.metrics[comparison.metric].name.parse().unwrap();
            assert!(row.label.starts_with(&metric.label()), "{}", row.label);
            assert!(page.cells[comparison.baseline].label.ends_with(&format!(" {size} B")));
        }
    }
    for sentence in &page.sentences {
        let metric = &page.metrics[page.comparisons[sentence.comparison].metric].name;
        let metric: Metric = metric.parse().unwrap();
        assert!(sentence.text.starts_with(&metric.label()), "{}", sentence.text);
    }
}

#[test]
fn runs_are_columns_and_invalid_ones_have_no_figure() {
    let page = document();
    assert_eq!((page.runs.block.clone(), page.runs.started_s.clone()), (vec![0, 1], vec![2.5, 2.5]));
    let throughput = page.metrics.iter().position(|metric| metric.name == "throughput").unwrap();
    let column = page.runs.figures.iter().find(|column| column.metric == throughput).unwrap();
    assert_eq!(column.values, [Some(57.3123), None]);
    let found: Vec<(&str, &[usize])> =
        page.runs.remarks.iter().map(|remark| (remark.code.as_str(), &remark.runs[..])).collect();
    assert_eq!(found, [("invalid", &[1][..]), ("tick", &[0, 1][..])]);
}

#[test]
fn a_runs_detail_keeps_what_the_record_says() {
    let side = &document().details[0].ends[0];
    let delays = side.delays.as_ref().unwrap();
    assert_eq!(delays.counts.iter().sum::<f64>(), 100.0);
    assert_eq!(delays.edges.len(), delays.counts.len() + 1);
    for (name, expected) in [("median", 0.01), ("90 %", 0.1), ("99 %", 1.0), ("most", 10.0)] {
        assert!(delays.percentiles.contains(&(name.to_owned(), expected)), "{name}: {delays:?}");
    }
    let series = side.series.as_ref().unwrap();
    // 12 500 bytes in 10 ms; the last row is not whole.
    assert_eq!((series.rate.clone(), series.start_ms.clone()), (vec![10.0, 10.0], vec![0.0, 10.0]));
    let cpu = side.cpu.as_ref().unwrap();
    assert_eq!((cpu.busy, cpu.whole), (60.0, 200.0));
    let detail = &document().details[0];
    assert_eq!(detail.warmup_ms, 20.0);
    assert!(detail.missing.iter().any(|fact| fact.text == "missing: no TCP_INFO"));
}

#[test]
fn only_figures_of_measured_metrics_are_overlaid() {
    let page = document();
    assert_eq!(
        page.published.iter().map(|series| series.label.as_str()).collect::<Vec<_>>(),
        ["Ubuntu (Figure 7)"]
    );
    assert_eq!((page.limits.len(), page.limited_by.as_str()), (3, "headers"));
}

#[test]
fn hosts_stand_in_traffic_order_with_links_between() {
    let two = document().testbed;
    assert_eq!(two.rows.len(), 1);
    let places: Vec<_> = two.rows[0].hosts.iter().map(|host| (&host.name[..], &host.system[..])).collect();
    assert_eq!(places, [("sender", "Linux 6.12.0"), ("receiver", "Linux 6.12.0")]);
    assert_eq!(two.rows[0].links.len(), 1);
    assert_eq!(two.rows[0].links[0].facts, ["100 Mbit/s", "MTU 1500", "offloads off"]);

    let found = findings();
    let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
    // As a record has them: the ends first, then the routers; after a reboot with another kernel all again.
    let hosts = ["6.1.0", "6.12.0"].map(|kernel| {
        ["sender", "receiver", "router1", "router2"].map(|name| (name.to_owned(), host(kernel)))
    });
    let row = TestbedDrawing {
        names: ["sender", "router1", "router2", "receiver"].map(str::to_owned).to_vec(),
        mechanisms: vec!["native".to_owned(), "6in4".to_owned()],
        links: Links {
            middle: OwnLink { delay_ns: 5_000_000, ..OwnLink::default() },
            far: OwnLink { rate: Some(Rate(1_000_000_000)), mtu: Some(9000), ..OwnLink::default() },
            ..Links::default()
        },
        ..TestbedDrawing::default()
    };
    let source = PageSource {
        findings: &found,
        link_config: &link_config,
        hosts: &hosts.concat(),
        kinds: &["namespace, 6in4".to_owned()],
        rows: &[row],
        runs: &[],
        limits: &[],
        limited_by: LimitedBy::Airtime,
        published: &[],
        details: &[],
    };
    let four = page(&source).testbed;
    let row = &four.rows[0];
    let names: Vec<&str> = row.hosts.iter().map(|host| &host.name[..]).collect();
    assert_eq!(names, ["sender", "router1", "router2", "receiver"]);
    assert!(row.hosts.iter().all(|host| host.system == "Linux 6.12.0"), "{row:?}");
    let mechanisms: Vec<String> = row.links.iter().map(|link| link.mechanisms.join(" ")).collect();
    assert_eq!(mechanisms[..2], ["", "native 6in4"]);
    let facts: Vec<String> = row.links.iter().map(|link| link.facts.join(", ")).collect();
    let every = "no rate limit, MTU 1500, offloads on";
    assert_eq!(facts, [every, &format!("delay 5 ms, {every}"), "1 Gbit/s, MTU 9000, offloads on"]);
    assert_eq!((&four.hosts[0].kind[..], &four.hosts[1].kind[..]), ("namespace, 6in4", ""));
}

#[test]
fn a_long_series_is_joined_without_losing_bytes() {
    let mut run = run(0, RunStatus::Valid);
    run.host_reports[0].series = (0..1000)
        .map(|i| IntervalRow { start_ns: i * 10 * MS, messages: 10, bytes: 12_500, delay_mean_ns: None })
        .collect();
    let detail = detail(&run, &[], Detailed::Briefly);
    let series = detail.ends[0].series.as_ref().unwrap();
    assert!(series.rate.len() <= 120 && series.joined == 9, "{series:?}");
    assert!(series.rate.iter().all(|rate| *rate == 10.0) && series.delay.iter().all(Option::is_none));
    assert!(detail.ends[0].counters.is_empty());
}

/// A run with two slices, the second of which did not arrive.
fn make_run_in_slices(position: u32, family: Family, begin_ns: u64) -> RunRecord {
    let mut run = run(0, RunStatus::Valid);
    run.trial.position = position;
    run.trial.cell.family = family;
    run.host_reports[0].role = Role::Sender;
    for round in 0..2 {
        let first_ns = begin_ns + u64::from(round) * 4 * MS;
        let last_ns = first_ns + 2 * MS;
        let slice = Slice { round, messages: 101, at_first: 1, first_ns, last_ns, ..Slice::default() };
        run.host_reports[0].slices.push(slice);
    }
    let mut receiver = HostReport { role: Role::Receiver, ..run.host_reports[0].clone() };
    receiver.slices.truncate(1);
    receiver.slices[0].waited_ns = Some(MS);
    run.host_reports.push(receiver);
    run
}

#[test]
fn the_slices_of_all_arms_are_shown_with_each_of_them() {
    let four = make_run_in_slices(0, Family::Ipv4, 1_000 * MS);
    let six = make_run_in_slices(1, Family::Ipv6, 1_002 * MS);
    let seen = detail(&six, std::slice::from_ref(&four), Detailed::Briefly).slices.unwrap();
    assert_eq!(detail(&four, std::slice::from_ref(&six), Detailed::Fully).slices.as_ref(), Some(&seen));
    assert_eq!((seen.what.as_str(), seen.unit.as_str()), ("payload received", "Mbit/s"));
    assert_eq!(seen.arms.iter().map(|arm| &arm.start_ms[..]).collect::<Vec<_>>(), [[0.0, 4.0], [2.0, 6.0]]);
    // 100 messages in 2 ms.
    let rate = f64::from(four.spec.message_bytes) * 8.0 * 50_000.0 / 1e6;
    assert_eq!(seen.arms[0].figures, [Some(rate), None]);
    assert_eq!(seen.arms[0].held_up, [true, false]);
    assert_eq!(detail(&run(0, RunStatus::Valid), &[], Detailed::Fully).slices, None);
}

/// An end of a run whose report somebody changed.
fn view_end(change: impl FnOnce(&mut HostReport)) -> EndView {
    let mut hostile = run(0, RunStatus::Valid);
    change(&mut hostile.host_reports[0]);
    detail(&hostile, &[], Detailed::Fully).ends.remove(0)
}

fn view_delays(buckets: &[(u64, u64)]) -> Option<HistogramView> {
    view_end(|side| side.delays.as_mut().unwrap().buckets = Buckets(buckets.to_vec())).delays
}

fn view_series(starts: [u64; 3]) -> Option<SeriesView> {
    let [messages, bytes] = [u64::MAX; 2];
    let rows =
        starts.map(|start_ns| IntervalRow { start_ns, messages, bytes, delay_mean_ns: Some(f64::MAX) });
    view_end(|side| side.series = rows.to_vec()).series
}

#[test]
fn figures_that_nobody_measured_harm_nothing() {
    assert_eq!(view_delays(&[(1_000, 1), (10, 1), (2_000, 1)]), None);
    assert_eq!(view_delays(&[(1_000, 1), (1_000_000_000, 1), (2_000, 1)]), None);
    assert!(view_delays(&[(0, u64::MAX), (u64::MAX, u64::MAX)]).is_some());
    assert_eq!(view_series([u64::MAX, 0, 1]), None);
    assert!(view_series([0, 1, u64::MAX]).is_some());
    let busy = view_end(|side| {
        let cpu = side.cpu.as_mut().unwrap();
        (cpu.user_ns, cpu.system_ns, cpu.irq_ns, cpu.idle_ns) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    });
    assert!(busy.cpu.is_some());
}

#[test]
fn same_source_gives_same_bytes_with_text_escaped() {
    let mut hostile = findings();
    hostile.title = "</script><script>alert(1)</script>".to_owned();
    hostile.testbed_description = "\u{2028}<!--".to_owned();
    match html(&of(&hostile)) {
        Ok(html_) => {
            assert_eq!(html_, html(&of(&hostile)).unwrap());
            assert!(!html_.contains("alert(1)</script>") && !html_.contains('\u{2028}'));
            assert_eq!(html_.matches("<script").count(), 2);
        }
        // A program that was built without its page says so.
        Err(none) => assert!(super::shell().is_err() && none.to_string().contains("make build")),
    }
}

#[test]
fn a_headline_counts_every_figure_once() {
    let said = build_comparison_page(&found(), &Default::default()).headline;
    assert_eq!(said, "B is better in 0 of 2 figures and worse in 1; 0 are equivalent, 1 are undecided.");
}

#[test]
fn length_that_rows_lack_is_not_known() {
    let mut of_rows = run(0, RunStatus::Valid);
    of_rows.spec.probe.length = Length::Time(0);
    let facts = format!("{:?}", detail(&of_rows, &[], Detailed::Fully).facts);
    assert!(facts.contains("not known") && !facts.contains("0 ns"), "{facts}");
}
