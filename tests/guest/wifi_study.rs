//! Studies over Wi-Fi, really running: station, access point and station in user-mode Linux, in virtual time. The tests
//! need root and the user-mode Linux that is made here (uml-full).

use crate::support;
use crate::support::studies::TestStudy;

use stacklab_model::wifi::{
    self, AccessCategory, Band, Bianchi, ChannelUse, Edca, NodeAirtime, Security, WifiConfig,
};
use stacklab_model::{
    Factor, Family, Metric, Role, RunRecord, Station, StationReport, Topology, Transport, Value,
};
use stacklab_store::Record;
use stacklab_study::{Input, parse};
use std::collections::HashSet;
use support::program::{Program, code, require_root};
use support::records::{figure, runs};

/// A stream and an echo of both families over Wi-Fi.
fn study() -> TestStudy {
    with_stream(cells())
        .echo(&["rtt"])
        .time("50ms")
        .warmup("20ms")
        .schedule("sequential")
        .blocks(2)
        .compare_families()
}

/// A study without a probe.
fn cells() -> TestStudy {
    TestStudy::new("Both families over Wi-Fi")
        .topology("wifi")
        .set("testbed.wifi.aggregation.frames", 8)
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[1408])
}

fn with_stream(study: TestStudy) -> TestStudy {
    study.stream(&METRICS).time("300ms").warmup("100ms")
}

const METRICS: [&str; 8] = [
    "throughput",
    "loss",
    "one_way_delay_mean",
    "cpu_sender",
    "airtime",
    "aggregate_size",
    "collisions",
    "queue_drops_access_point",
];

/// A flood's share of half of what one saturated sender would carry. The access point drops what its queue has no place
/// for; if the receiver waited 100 ms for what was dropped last, a third would be missing. Backoffs of station and
/// access point run at the same time, which is worth up to 7 %.
const SHARE: std::ops::Range<f64> = 0.85..1.1;

/// Runs a study. Returns its runs, and the description of its testbed.
fn measure(study: &TestStudy) -> (Vec<RunRecord>, String) {
    require_root();
    let program = Program::new();
    program.write("study.toml", study.text());
    let path = program.work().join("study.stacklab");
    program.run(&["run", "study.toml", "--out", "study.stacklab", "--seed", "1"]).expect(code::DONE);
    let described = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    (runs(&path), described)
}

fn network(study: &TestStudy) -> WifiConfig {
    match parse(&Input::file("study.toml", &study.text())).unwrap().topology {
        Topology::Wifi(network) => network,
        other => panic!("{other:?}"),
    }
}

fn stations(run: &RunRecord) -> Vec<&StationReport> {
    let all: Vec<_> = run.host_reports.iter().filter_map(|report| report.station.as_ref()).collect();
    assert_eq!(all.len(), 2, "{}", run.trial);
    all
}

/// What the channel did in a stream: both hops had it, and its parts add up to the time between the arrivals.
fn check_channel(run: &RunRecord) {
    let received = run.host_reports.iter().find(|report| report.role == Role::Receiver).unwrap();
    let used = received.channel.as_ref().unwrap();
    let windows: u64 = received.windows().iter().map(|[from, to]| to - from).sum();
    // Each window begins and ends with an exchange under way at most.
    let edges = received.windows().len() as u64 * 5_484_000;
    assert!(used.airtime.elapsed_ns().abs_diff(windows) < edges, "{}: {windows} ns, {used:?}", run.trial);
    assert!(used.airtime.data_ns > 0 && used.nodes[0].data_ns > 0 && used.nodes[1].data_ns > 0);
    let taken = used.nodes.iter().map(NodeAirtime::busy_ns).sum::<u64>() + used.airtime.collision_ns;
    assert_eq!(taken, used.airtime.busy_ns(), "{}", run.trial);
    assert!((0.5..1.0).contains(&figure(run, Metric::Airtime)), "{}", run.trial);
    assert!((1.0..=8.0).contains(&figure(run, Metric::AggregateSize)), "{}", run.trial);
    assert!((0.0..0.5).contains(&figure(run, Metric::Collisions)), "{}", run.trial);
    assert!((0.0..0.5).contains(&figure(run, Metric::QueueDropsAccessPoint)), "{}", run.trial);
    let in_order = used.intervals.windows(2).all(|pair| pair[0].end_ns <= pair[1].begin_ns);
    assert!(in_order && !used.intervals.is_empty() && used.intervals.len() <= ChannelUse::MAX_INTERVALS);
}

/// What every run's stations must be: those of the plan, before and after.
fn check_stations(run: &RunRecord) {
    for StationReport { before, after, .. } in stations(run) {
        assert_eq!(before, after, "{}", run.trial);
        let Station { ssid, bssid, cipher, key_management, frequency, width, center, frames, .. } = before;
        assert_eq!((ssid.as_str(), bssid.as_str()), ("stacklab", "02:00:00:00:00:03"));
        assert_eq!((cipher.as_str(), key_management.as_str()), ("CCMP", "WPA2-PSK"));
        assert_eq!((*frequency, *width, *center), (2412, 40, 2422));
        let seen: Vec<_> = frames.iter().map(|frame| (frame.family, frame.protected)).collect();
        assert_eq!(seen, [(Family::Ipv4, true), (Family::Ipv6, true)]);
        // QoS header, CCMP, LLC and SNAP.
        assert!(frames.iter().all(|frame| frame.bytes == frame.packet + 26 + 16 + 8), "{frames:?}");
    }
}

#[test]
fn wifi_study_covers_families_transports_and_probes() {
    let (all, described) = measure(&study());
    assert_eq!(all.len(), 2 * 4 * 2);
    let network = network(&study());
    assert!(described.contains("station - access point - station inside user-mode Linux"), "{described}");
    assert!(described.contains(&network.to_string()), "{described}");
    let mut seeds = HashSet::new();
    for run in &all {
        check_stations(run);
        seeds.insert(stations(run)[0].seed);
        let cell = &run.trial.cell;
        if run.values.contains_key(&Metric::Rtt) {
            let ms = figure(run, Metric::Rtt);
            assert!((0.1..10.0).contains(&ms), "{cell}: {ms} ms");
            continue;
        }
        check_channel(run);
        let mbit = figure(run, Metric::Throughput);
        // The hosts have one kernel, and so one clock.
        let delay = figure(run, Metric::OneWayDelayMean);
        println!("note: {cell}: {mbit:.2} Mbit/s, {delay:.1} ms");
        assert!((0.1..1000.0).contains(&delay), "{cell}: {delay} ms");
        if cell.transport == Transport::Udp {
            let expected = network.saturation(cell).unwrap().goodput(cell.payload_bytes()) / 2.0;
            assert!(SHARE.contains(&(mbit / expected)), "{cell}: {mbit} Mbit/s, not {expected}");
        } else {
            assert!(mbit > 20.0, "{cell}: {mbit} Mbit/s");
        }
        let Value::Missing(reason) = &run.values[&Metric::CpuSender] else { panic!("{:?}", run.values) };
        assert!(reason.contains("virtual"), "{reason}");
        assert!(run.host_reports.iter().all(|report| report.cpu.is_none()));
    }
    assert_eq!(seeds.len(), all.len(), "each trial has its own seed");
}

#[test]
fn families_take_turns_over_wifi() {
    let (all, _) = measure(&study().schedule("interleaved").transports(&["udp"]));
    let streams = all.iter().filter(|run| run.values.contains_key(&Metric::Throughput));
    let sliced: Vec<_> = streams.filter(|run| !run.spec.schedule.is_alone()).collect();
    assert!(sliced.len() >= 2 * 2, "{}", sliced.len());
    for run in sliced {
        check_stations(run);
        check_channel(run);
        assert!(run.host_reports.iter().all(|report| report.slices.len() >= 5), "{}", run.trial);
        assert!(figure(run, Metric::Throughput) > 10.0, "{}", run.trial);
    }
}

#[test]
fn networks_of_one_study_differ_in_what_it_varies() {
    let study =
        study().sizes(&[384]).levels(Factor::WifiSecurity, ["open", "wpa2", "wpa3"]).transports(&["udp"]);
    let (all, described) = measure(&study);
    assert_eq!(all.len(), 2 * 6 * 2);
    assert_eq!(described.lines().count(), 3, "{described}");
    for run in &all {
        let security = run.trial.cell.settings.wifi.security.unwrap();
        let open = security == Security::Open;
        let (key_management, management_cipher) = match security {
            Security::Open => ("NONE", None),
            Security::Wpa2 => ("WPA2-PSK", None),
            Security::Wpa3 => ("SAE", Some("BIP")),
        };
        for station in stations(run) {
            let Station { cipher, frames, .. } = &station.before;
            assert_eq!(cipher, if open { "NONE" } else { "CCMP" }, "{}", run.trial);
            assert_eq!(station.before.key_management, key_management, "{}", run.trial);
            assert_eq!(station.before.management_cipher.as_deref(), management_cipher, "{}", run.trial);
            assert!(frames.iter().all(|frame| frame.protected != open));
        }
        if run.values.contains_key(&Metric::Throughput) {
            let mbit = figure(run, Metric::Throughput);
            let frames = figure(run, Metric::AggregateSize);
            let cell = &run.trial.cell;
            println!("note: {cell}: {mbit:.2} Mbit/s, {frames:.2} frames an A-MPDU");
            // Also where the block acknowledgement sessions are encrypted.
            assert!(frames > 3.0, "{}: {frames}", run.trial);
            let half = network(&study).saturation(cell).unwrap().goodput(cell.payload_bytes()) / 2.0;
            assert!(SHARE.contains(&(mbit / half)), "{cell}: {mbit} Mbit/s, not {half}");
        }
    }
}

#[test]
fn forgetful_hosts_ask_by_arp_or_neighbour_discovery() {
    // Slow enough that each message finds the entries removed.
    let study = cells()
        .set("testbed.wifi.basic_rate", "1 Mbit/s")
        .sizes(&[128])
        .levels(Factor::WifiNeighbourLifetime, ["10ms", "1h"])
        .levels(Factor::WifiMulticastToUnicast, [false, true])
        .transports(&["udp"])
        .stream(&["group_airtime", "loss"])
        .set_of_probe("message_rate", 50)
        .time("400ms")
        .warmup("100ms")
        .schedule("sequential")
        .blocks(2);
    let (all, described) = measure(&study);
    assert_eq!(all.len(), 2 * 2 * 2 * 2);
    assert!(described.contains("neighbour entries live for 10 ms"), "{described}");
    // A PPDU to a group at 1 Mbit/s with WPA2 (docs/wifi.md), 50 of them in a second; or each to one station.
    for (family, to_unicast, asked_us) in [
        (Family::Ipv4, false, 832.0),
        (Family::Ipv6, false, 1184.0),
        (Family::Ipv4, true, 0.0),
        (Family::Ipv6, true, 0.0),
    ] {
        let [often, never] = ["10ms", "1h"].map(|lifetime| {
            let mut least = f64::INFINITY;
            for run in &all {
                let cell = &run.trial.cell;
                let lives = cell.settings.wifi.neighbour_lifetime.as_ref().map(ToString::to_string);
                let is_unicast = cell.settings.wifi.multicast_to_unicast == Some(to_unicast);
                if cell.family == family && is_unicast && lives.as_deref() == Some(lifetime) {
                    assert_eq!(figure(run, Metric::Loss), 0.0, "{}", run.trial);
                    // Reports of group membership may fall into a run, and only add to it.
                    least = least.min(figure(run, Metric::GroupAirtime));
                }
            }
            least
        });
        assert!(often.is_finite() && never.is_finite(), "{family}, to unicast {to_unicast}: no run");
        let share = often - never;
        let expected = 50.0 * asked_us / 1e6;
        println!(
            "note: {family}, to unicast {to_unicast}: {:.2} % more group airtime, {:.2} by its PPDUs",
            100.0 * share,
            100.0 * expected
        );
        // One beacon more or less in 400 ms.
        assert!(
            (share - expected).abs() < 0.005,
            "{family}, to unicast {to_unicast}: {share}, not {expected}"
        );
    }
}

#[test]
fn wired_receiver_has_one_hop_and_others_their_share() {
    let study = with_stream(cells())
        .set("testbed.wifi.receiver", "wired")
        .family("ipv6")
        .levels(Factor::WifiStations, [0, 2])
        .transports(&["udp"])
        .schedule("sequential")
        .blocks(2);
    let (all, described) = measure(&study);
    assert!(described.contains("station - access point - wired host inside user-mode Linux"), "{described}");
    assert_eq!(all.len(), 2 * 2);
    let network = network(&study);
    for run in &all {
        let stations: Vec<_> = run.host_reports.iter().map(|report| report.station.is_some()).collect();
        assert_eq!(stations, [true, false], "{}", run.trial);
        let others = usize::from(run.trial.cell.settings.wifi.stations.unwrap());
        let received = run.host_reports.iter().find(|report| report.role == Role::Receiver).unwrap();
        let used = received.channel.as_ref().unwrap();
        assert_eq!(used.nodes.len(), 3 + others, "{}", run.trial);
        assert_eq!(used.nodes[2].transmissions, 0, "the receiver has no radio");
        let alone = network.saturation(&run.trial.cell).unwrap();
        let senders = 1 + others as u32;
        let model = Bianchi::new(senders, Edca::default_of(wifi::Role::Station, AccessCategory::BestEffort));
        let rate = model.exchanges_per_second(alone.exchange, alone.aifs_ns, Band::Ghz2.slot_ns());
        let payload = run.trial.cell.payload_bytes();
        let expected = 8e-6 * rate * f64::from(alone.frames * payload) / f64::from(senders);
        let mbit = figure(run, Metric::Throughput);
        let data: Vec<_> = used.nodes.iter().map(|node| node.data_ns / 1000).collect();
        println!("note: {others} others: {mbit:.2} Mbit/s, Bianchi {expected:.2}; data, us: {data:?}");
        let allowed = if others == 0 { 0.03 } else { 0.2 };
        assert!((mbit / expected - 1.0).abs() < allowed, "{}: {mbit}, not {expected}", run.trial);
        assert!(used.nodes[3..].iter().all(|node| node.data_ns > used.nodes[0].data_ns / 2), "{data:?}");
    }
}
