//! One saturated station of a Wi-Fi network, in virtual time: its agent floods the access point's with UDP through the
//! guest's real stack, and what arrives is compared with the closed formula of docs/wifi.md. The test needs root and
//! the user-mode Linux that is made here (uml-full).

use super::wifi::{ADDRESSES, boot, wpa2};
use crate::support;

use stacklab_model::wifi::{
    AccessCategory, Aggregation, Edca, Role, Security as Cipher, WifiClock, WifiSettings, mpdu_bytes,
};
use stacklab_model::{
    Cell, Direction, Family, Length, Metric, Pacing, Probe, ProbeSpec, RunRecord, RunStatus, SizeOf,
    Transport, Trial, TrialSpec, Value,
};
use stacklab_testbed::Streams;
use stacklab_traffic::protocol::AgentClient;
use stacklab_trial::{Path, run_trial};
use stacklab_wifi::{Security, WifiSpec};
use std::sync::atomic::AtomicBool;
use support::program::Program;

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The share by which the medium may differ from the formula: the access point's beacons, and backoffs of a second.
const TOLERANCE: f64 = 0.01;
/// The variable with the sizes, instead of the usual one.
const SIZES: &str = "STACKLAB_WIFI_SIZES";
/// The variable with which `bench/wifi` measures real time instead: messages a second.
const REAL_TIME: &str = "STACKLAB_WIFI_REAL_TIME";
const SECOND_NS: u64 = 1_000_000_000;
const ACCESS_POINT: [&str; 2] = ["198.18.0.3", "2001:2:0:1::3"];

fn settings(frames: u32) -> WifiSettings {
    let usual = WifiSettings::default();
    WifiSettings { aggregation: Aggregation { frames, ..usual.aggregation }, ..usual }
}

fn formula(family: Family, size: u32, frames: u32, cipher: Cipher) -> f64 {
    let packet = family.header_bytes() + Transport::Udp.header_bytes() + size;
    let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
    settings(frames).radio().unwrap().saturation(edca, mpdu_bytes(cipher, packet)).goodput(size)
}

/// The agents of two hosts.
pub(crate) fn meet(hosts: [(&str, Streams); 2]) -> [AgentClient; 2] {
    hosts.map(|(name, (read, write))| {
        let mut agent = AgentClient::new(name, read, write, &NEVER_INTERRUPTED);
        agent.hello().unwrap();
        agent
    })
}

/// A flood from the first host to this address of the second one, of a socket with a bounded buffer: frames in flight,
/// of which there is room for 150.
pub(crate) fn flood(cell: &Cell, to: &str, length_ns: u64, agents: &mut [AgentClient; 2]) -> RunRecord {
    stream(cell, Pacing::Flood, to, length_ns, agents)
}

/// As [`flood`], at this pace.
fn stream(cell: &Cell, pacing: Pacing, to: &str, length_ns: u64, agents: &mut [AgentClient; 2]) -> RunRecord {
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing,
        length: Length::Time(length_ns),
        warmup_ns: length_ns / 10,
        interval_ns: 100_000_000,
        metrics: Vec::new(),
    };
    let mut cell = cell.clone();
    cell.settings.tuning.send_buffer = Some(65_536);
    let place = Family::ALL.iter().position(|one| *one == cell.family).unwrap();
    let [sender, receiver] =
        [ADDRESSES[place].1, to].map(|address| address.parse::<std::net::IpAddr>().unwrap().into());
    let path = Path {
        sender,
        receiver,
        mtu: 1500,
        planned_mtu: true,
        offloads: true,
        rate: None,
        shared: true,
        nat: None,
        opener: None,
        customers: Vec::new(),
    };
    let trial = Trial { block: 0, position: 0, cell: cell.clone(), probe: Probe::Stream };
    let [sender, receiver] = agents;
    let spec = TrialSpec::new(7, &cell, probe);
    run_trial(sender, receiver, &path, &trial, spec, Direction::Forward)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The sizes of messages, bytes: `bench/wifi` has more of them.
fn sizes() -> Vec<u32> {
    let named = std::env::var(SIZES).unwrap_or_else(|_| "1408".to_owned());
    named.split_whitespace().map(|size| size.parse().unwrap()).collect()
}

/// Prints what real time holds from station to station: UDP at these paces, messages a second, and a flood.
fn tell_real_time(paces: &str) {
    let paces = paces.split_whitespace().map(|pace| Pacing::Schedule(pace.parse().unwrap()));
    let paces: Vec<_> = paces.chain([Pacing::Flood]).collect();
    let program = Program::new();
    let security = wpa2("sixteen bytes ok");
    let settings = WifiSettings { clock: WifiClock::Real, ..settings(8) };
    let spec = WifiSpec::new(settings, security.clone(), [security.clone(), security]).unwrap();
    let mut network = boot(&program, &spec).unwrap_or_else(|error| panic!("{error}"));
    let [sender, _, receiver] = network.agents;
    let mut agents = meet([("sender", sender), ("receiver", receiver)]);
    for size in sizes() {
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Write, size);
        for pacing in &paces {
            let before = network.hosted.medium_report().unwrap();
            let run = stream(&cell, *pacing, ADDRESSES[0].2, SECOND_NS, &mut agents);
            let after = network.hosted.medium_report().unwrap();
            let lateness = after.lateness.since(&before.lateness);
            let seconds = (after.elapsed_ns - before.elapsed_ns) as f64 / 1e9;
            let frames = (after.frames.delivered - before.frames.delivered) as f64 / seconds;
            let exchanges = lateness.exchanges as f64 / seconds;
            let late = 100.0 * lateness.share().unwrap();
            let Value::Measured(received) = run.values[&Metric::MessageRate] else {
                panic!("{:?}", run.values)
            };
            println!(
                "note: {size} bytes, {pacing:?}: {received:.0} messages/s, {frames:.0} frames/s, {exchanges:.0} exchanges/s, \
                 {late:.1} % late"
            );
        }
    }
}

#[test]
fn saturated_station_carries_what_the_formula_says() {
    if let Ok(paces) = std::env::var(REAL_TIME) {
        return tell_real_time(&paces);
    }
    for (security, cipher) in [(Security::Open, Cipher::Open), (wpa2("sixteen bytes ok"), Cipher::Wpa2)] {
        for frames in [8] {
            let program = Program::new();
            let spec =
                WifiSpec::new(settings(frames), security.clone(), [security.clone(), security.clone()])
                    .unwrap();
            let mut network = boot(&program, &spec).unwrap_or_else(|error| panic!("{error}"));
            let [sender, access_point, _receiver] = network.agents;
            let mut agents = meet([("sender", sender), ("access point", access_point)]);
            for (family, to) in Family::ALL.iter().zip(ACCESS_POINT) {
                for size in sizes() {
                    let cell = Cell::new(*family, Transport::Udp, SizeOf::Write, size);
                    let run = flood(&cell, to, SECOND_NS, &mut agents);
                    assert_eq!(run.status, RunStatus::Valid, "{family} {size}");
                    let Value::Measured(measured) = &run.values[&Metric::Throughput] else {
                        panic!("{family} {size}: {:?}", run.values)
                    };
                    let expected = formula(*family, size, frames, cipher);
                    println!(
                        "note: {cipher} {family} {frames} x {size}: {measured:.2}, formula {expected:.2} Mbit/s"
                    );
                    let ratio = measured / expected;
                    assert!(
                        (ratio - 1.0).abs() < TOLERANCE,
                        "{cipher} {family} {frames} x {size}: {ratio:.4}"
                    );
                }
            }
            let report = network.hosted.medium_report().unwrap();
            assert_eq!((report.lateness.late, report.frames.dropped), (0, 0), "{report:?}");
        }
    }
}
