//! The highest load of a link of known rate. The test needs root.

use crate::support;

use stacklab_model::{
    Cell, Factor, Family, LinkConfig, Metric, Pacing, Probe, Rate, RunRecord, SearchOutcome, SizeOf,
    Transport,
};
use std::fs;
use std::time::Duration;
use support::iperf3::Hosts;
use support::program::{Program, code, require_root};
use support::records::runs;
use support::studies::TestStudy;

/// A search over a link of 10 Mbit/s, the bounds near what it finds, and delays at the lower one. The truth is the
/// link's rate over the bytes of a frame, and up to a hundredth more, for as many messages may be lost. Frames have 64
/// bytes over IPv4 and 84 over IPv6, as in RFC 8219.
fn study() -> TestStudy {
    TestStudy::new("The highest load of a link")
        .rate("10 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[18])
        .probe("search", &["load_at_loss", "lower_bound", "upper_bound", "conditional_throughput"])
        .set_of_probe("loss", "1 %")
        .set_of_probe("goal.loss", "1 %")
        .set_of_probe("goal.exceed", "50 %")
        .set_of_probe("goal.trial", "200ms")
        .set_of_probe("goal.sum", "400ms")
        .probe("paced", &["one_way_delay", "one_way_delay_p999", "pdv", "ipdv_min", "ipdv_max"])
        .set_of_probe("message_rate", "search")
        .time("200ms")
        .blocks(2)
        .compare_families()
}

const LINK_CONFIG: LinkConfig = LinkConfig { rate: Some(Rate(10_000_000)), mtu: 1500, offloads: false };

/// Runs a study, and gives its runs.
fn search(program: &Program, study: &TestStudy) -> Vec<RunRecord> {
    program.write("study.toml", study.text());
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    runs(&program.work().join("x.stacklab"))
}

/// The figures of an arm. A run without one says that the tester was disturbed, as on a machine whose hypervisor takes
/// much time.
fn collect_loads(runs: &[RunRecord], family: Family, metric: Metric) -> Vec<f64> {
    let mut loads = Vec::new();
    for run in runs.iter().filter(|run| run.trial.cell.family == family && run.trial.probe == Probe::Search) {
        let value = &run.values[&metric];
        match value.measured() {
            Some(load) => loads.push(load),
            None => {
                let reason = format!("{value:?}");
                let is_disturbed =
                    reason.contains("the tester disturbed") || reason.contains("no load was found");
                assert!(is_disturbed, "{reason}");
            }
        }
    }
    loads
}

#[test]
fn no_figure_is_far_from_the_rate_of_a_link() {
    require_root();
    let program = Program::new();
    let runs = search(&program, &study());
    for family in [Family::Ipv4, Family::Ipv6] {
        let frame = if family == Family::Ipv4 { 64 } else { 84 };
        let cell = Cell::new(family, Transport::Udp, SizeOf::Frame, frame);
        let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.995;
        for metric in [Metric::LoadAtLoss, Metric::LowerBound, Metric::UpperBound] {
            let loads = collect_loads(&runs, family, metric);
            println!("note: {metric}, {family}: the truth is {truth:.0} messages/s, found {loads:.0?}");
            for load in loads {
                assert!((load / truth - 1.0).abs() < 0.025, "{metric} of {family}: {load}, not {truth}");
            }
        }
    }
    assert_bounds_and_delays(&runs);
    // The slices of all blocks, whether or not they made a figure.
    let report = program.run(&["report", "x.stacklab"]).expect(code::DONE).stdout;
    if collect_loads(&runs, Family::Ipv4, Metric::LowerBound).len() == 2 {
        let bounds = report.split("Throughput and delays by RFC 8219").nth(1).expect("a table of RFC 8219");
        for words in
            ["lower bound (throughput)", "typical latency", "least IPDV", "trials of 200 ms instead of 60 s"]
        {
            assert!(bounds.contains(words), "{words}: {report}");
        }
    }
    let table = report.split("Loss by load, UDP 18 B").nth(1).expect("a table");
    let rows = table.lines().filter(|line| line.contains(" ± ")).count();
    assert!(rows >= 2 && table.contains("- IPv4: ") && table.contains("- IPv6: "), "{report}");
    let words = ["report", "x.stacklab", "--figure", "loss-by-load-udp-18-b", "--out", "loss.svg"];
    program.run(&words).expect(code::DONE);
    let figure = fs::read_to_string(program.work().join("loss.svg")).unwrap();
    assert!(figure.contains("lost or late, %") && figure.contains("IPv6"), "{figure}");
}

/// Bounds are a per cent apart, and streams have the load of their arm's lower bound: the path's queue stays short.
fn assert_bounds_and_delays(runs: &[RunRecord]) {
    for search in runs.iter().filter(|run| run.trial.probe == Probe::Search) {
        let Some(lower) = search.values[&Metric::LowerBound].measured() else { continue };
        let upper = figure(search, Metric::UpperBound);
        assert!(lower <= upper && upper / lower < 1.0112, "{}: {lower} to {upper}", search.trial);
        let conditional = figure(search, Metric::ConditionalThroughput);
        assert!((0.99 * lower..=lower).contains(&conditional), "{conditional} of {lower}");
        let streams = runs.iter().filter(|run| run.trial.probe == Probe::Paced);
        let mut of_block = streams.filter(|run| run.trial.block == search.trial.block);
        let stream = of_block.find(|run| run.trial.cell == search.trial.cell).expect("a stream of the arm");
        if stream.spec.probe.pacing == Pacing::Searched {
            // The other arm has no bound in this block.
            assert!(stream.values.iter().all(|(_, value)| value.measured().is_none()), "{}", stream.trial);
            continue;
        }
        assert_eq!(stream.spec.probe.pacing, Pacing::Schedule(lower));
        let [least, greatest] = [Metric::IpdvMin, Metric::IpdvMax].map(|metric| figure(stream, metric));
        assert!(least <= 0.0 && (0.0..1000.0).contains(&greatest), "{least} to {greatest}");
        let longest = figure(stream, Metric::OneWayDelayP999);
        for metric in [Metric::OneWayDelay, Metric::Pdv] {
            assert!(figure(stream, metric) <= longest, "{metric} beyond {longest}");
        }
    }
}

fn figure(run: &RunRecord, metric: Metric) -> f64 {
    run.values[&metric].measured().unwrap_or_else(|| panic!("{}: no {metric}", run.trial))
}

/// A path to an agent with a token bucket that counts 42 bytes of headers of a message over IPv4, and 62 over IPv6.
/// Five per cent of the messages may be lost. A slice has 200 messages; those that a full bucket lets pass when a slice
/// begins are part of the figure, for nobody knows the bucket of a path.
#[test]
fn measure_searches_a_path_to_an_agent() {
    let hosts = Hosts::new();
    hosts.run(0, "tc qdisc replace dev st0 root tbf rate 10mbit burst 3000 limit 60k").expect(0);
    let mut agent = hosts.program.started(hosts.command(1, "\"$STACKLAB\" agent --listen"));
    agent.wait_for("measures to it", Duration::from_secs(10));
    let to = [Family::Ipv4, Family::Ipv6].map(|family| hosts.address(1, family)).join(",");
    let words = "-l 1000 --against ipv4 --search 5% -t 10 --out x.stacklab";
    let outcome = hosts.run(0, &format!("\"$STACKLAB\" measure udp {to} {words}"));
    println!("note: {outcome}");
    let runs = runs(&hosts.program.work().join("x.stacklab"));
    for (family, frame) in [(Family::Ipv4, 1042.0), (Family::Ipv6, 1062.0)] {
        let rate = 10e6 / 8.0 / frame;
        let most = rate * (1.0 + 3000.0 / frame / 200.0) / 0.95;
        // What disturbs slices makes some of them bad at a load that the path carries.
        for load in collect_loads(&runs, family, Metric::LoadAtLoss) {
            assert!((0.975 * rate..1.025 * most).contains(&load), "{family}: {load}, not {rate} to {most}");
        }
    }
}

/// The queue of the narrow link at the first router, bytes of frames, and the bucket of the link, bytes of the wire.
const QUEUE_BYTES: f64 = 204_800.0;
const BUCKET_BYTES: f64 = 16_384.0;

/// A router gets messages from a link that is ten times as fast as the next one.
fn search_narrow_link(title: &str, metrics: &[&str]) -> TestStudy {
    TestStudy::new(title)
        .topology("routed")
        .rate("10 Mbit/s")
        .set("testbed.sender_link.rate", "100 Mbit/s")
        .levels(Factor::RouterQueue, ["inline"])
        .transports(&["udp"])
        .sizes(&[64])
        .probe("search", metrics)
        .set_of_probe("loss", "0.5 %")
        .blocks(2)
}

/// A burst fills the queue of a link whose packets come from one that is ten times as fast. The bucket, and what the
/// link carries meanwhile, may be added. At the messages per second that the link carries over IPv4, what exceeds its
/// rate over IPv6 is lost, but for the bucket.
#[test]
fn bursts_and_losses_are_those_of_a_router() {
    require_root();
    let program = Program::new();
    let metrics = ["back_to_back", "frame_loss_rate"];
    let study = search_narrow_link("The longest burst into a router", &metrics).families().compare_families();
    let runs = search(&program, &study);
    for (family, frame) in [(Family::Ipv4, 106.0), (Family::Ipv6, 126.0)] {
        let queue = QUEUE_BYTES / frame;
        let most = 1.02 * (queue + BUCKET_BYTES / (frame + 24.0)) / 0.9;
        let bursts = collect_loads(&runs, family, Metric::BackToBack);
        println!("note: {family}: from {queue:.0} to {most:.0} messages are possible, found {bursts:.0?}");
        for burst in bursts {
            assert!((queue..most).contains(&burst), "{family}: {burst}, not {queue} to {most}");
        }
    }
    assert_losses(&runs);
    let report = program.run(&["report", "x.stacklab"]).expect(code::DONE).stdout;
    let table = report.split("Frame loss rate, UDP 64 B").nth(1).expect("a table");
    assert!(table.contains("trials of 500 ms instead of 60 s"), "{report}");
}

/// The queue of the narrow link is full when the load falls below its rate, and has room at once: nothing is lost that
/// was sent later than a few gaps.
#[test]
fn a_queue_recovers_once_its_load_is_carried() {
    require_root();
    let program = Program::new();
    let study = search_narrow_link("The recovery of a router", &["recovery_time"]).family("ipv4");
    let runs = search(&program, &study);
    let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 64);
    let gap_ms = 1e3 / LINK_CONFIG.messages_per_second(&cell).unwrap();
    let times = collect_loads(&runs, Family::Ipv4, Metric::RecoveryTime);
    println!(
        "note: recovered after {times:.3?} ms, with {gap_ms:.3} ms between messages that the link carries"
    );
    for time in &times {
        assert!((0.9 * gap_ms..10.0 * gap_ms).contains(time), "{time}");
    }
    // A busy machine may disturb a block's trials, but not all of them.
    assert!(!times.is_empty());
    // An excess of a tenth for 4 s, without what the queue and the bucket hold, and what the link carries while the
    // sender is as late as it may be.
    let held = QUEUE_BYTES / 106.0 + BUCKET_BYTES / 130.0;
    let excess = 4.0 * 0.1 * 1e3 / gap_ms;
    let least = excess - 1.1 * held - 25.0 / gap_ms;
    for slice in runs.iter().flat_map(|run| &run.host_reports[0].search) {
        let lost = slice.lost() as f64;
        let is_valid = !matches!(slice.outcome, SearchOutcome::Invalid(_));
        assert!(!is_valid || (least..excess).contains(&lost), "{lost}, not from {least} to {excess}");
    }
}

fn assert_losses(runs: &[RunRecord]) {
    let [highest, ipv6] = [Family::Ipv4, Family::Ipv6].map(|family| {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        LINK_CONFIG.messages_per_second(&cell).unwrap()
    });
    let truth = 1.0 - ipv6 / highest;
    // A trial has half a second.
    let in_bucket = BUCKET_BYTES / 150.0 / (highest / 2.0);
    // What stops the machine for longer than the bucket holds is missing at the end of a trial.
    let most = 0.03;
    for (family, possible) in
        [(Family::Ipv4, 0.0..most), (Family::Ipv6, truth - in_bucket - 0.01..truth + most)]
    {
        let losses = collect_loads(runs, family, Metric::FrameLossRate);
        println!("note: {family}: losses of {possible:?} are possible, found {losses:?}");
        for loss in losses {
            assert!(possible.contains(&loss), "{family}: {loss}, not {possible:?}");
        }
    }
    for run in runs {
        let trials = run.host_reports[0].search.iter().filter(|slice| slice.percent.is_some());
        let percents: Vec<u32> = trials.filter_map(|slice| slice.percent).collect();
        assert!(percents.first() == Some(&100) && percents.is_sorted_by(|a, b| a >= b), "{percents:?}");
    }
}

/// Three customers share the last link, whose rate bounds what all of them send together.
#[test]
fn customers_are_searched_together() {
    require_root();
    let program = Program::new();
    let study = TestStudy::new("The highest load of three customers")
        .topology("routed")
        .rate("10 Mbit/s")
        .set("testbed.sender_link.rate", "100 Mbit/s")
        .levels(Factor::RouterQueue, ["inline"])
        .levels(Factor::Clients, [3_u32])
        .family("ipv4")
        .transports(&["udp"])
        .sizes(&[64])
        .probe("search", &["load_at_loss"])
        .set_of_probe("loss", "0.5 %")
        .blocks(2);
    let runs = search(&program, &study);
    let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 64);
    let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.9975;
    let loads = collect_loads(&runs, Family::Ipv4, Metric::LoadAtLoss);
    println!("note: the truth is {truth:.0} messages/s, found {loads:.0?}");
    for load in loads {
        assert!((load / truth - 1.0).abs() < 0.025, "{load}, not {truth}");
    }
    assert_eq!(runs[0].spec.flows, 3);
}

/// A translator beside plain forwarding, each router with a thread: every message that is lost was lost in a queue that
/// the routers count. The tester's own losses are apart from these.
#[test]
fn losses_are_found_at_the_routers_and_translators() {
    require_root();
    let program = Program::new();
    let study = TestStudy::new("Whose loss it is")
        .topology("routed")
        .levels(Factor::Mechanism, ["native", "siit"])
        .family("ipv4")
        .transports(&["udp"])
        .sizes(&[64])
        .probe("search", &["load_at_loss"])
        .set_of_probe("loss", "0.5 %")
        .blocks(2);
    let runs = search(&program, &study);
    assert_eq!(runs.len(), 4);
    let mut all_lost = 0;
    for run in &runs {
        let mut lost = [0, 0, 0];
        for slice in &run.host_reports[0].search {
            assert!(slice.at_realtime_priority, "{}: {slice:?}", run.trial);
            lost[0] += slice.lost();
            lost[1] += slice.lost_at_routers;
            lost[2] += slice.lost_at_receiver;
        }
        let [lost, at_routers, at_receiver] = lost;
        println!("note: {}: {lost} lost, {at_routers} at routers; {at_receiver} at the receiver", run.trial);
        assert!(lost - at_routers <= 20 + lost / 100, "{}: {lost}, {at_routers}", run.trial);
        all_lost += lost;
    }
    // A block in which the tester is held up has no losses: its answer is "at least".
    assert!(all_lost > 0);
}
