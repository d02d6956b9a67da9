//! The medium of a Wi-Fi network: that frames take their airtime, that virtual time repeats, and that a capture shows
//! what was on air. The tests need root, `ping`, `tshark`, and the user-mode Linux that is made here (uml-full).

use super::wifi::{ADDRESSES, Network, SENDER, boot, wpa2};
use super::wifi_saturation::{flood, meet};
use crate::support;

use stacklab_guests::WifiHosted;
use stacklab_model::wifi::{
    AccessCategory, Aggregate, Band, Edca, FrameExchange, Role, Security as Cipher, WifiClock, WifiSettings,
    mpdu_bytes,
};
use stacklab_model::{Cell, Family, HostReport, SizeOf, Transport};
use stacklab_testbed::enter;
use stacklab_wifi::{MediumReport, Passphrase, Security, WifiSpec};
use std::process::{Child, Command};
use support::program::{Program, require_root};

fn network(program: &Program, settings: WifiSettings, security: Security) -> Network {
    let spec = WifiSpec::new(settings, security.clone(), [security.clone(), security]).unwrap();
    boot(program, &spec).unwrap_or_else(|error| panic!("{error}"))
}

/// The exchange of a frame with a packet of these bytes.
fn exchange(packet_bytes: u32, cipher: Cipher) -> FrameExchange {
    let radio = WifiSettings::default().radio().unwrap();
    let mut aggregate = Aggregate::new(&radio);
    aggregate.push(mpdu_bytes(cipher, packet_bytes));
    radio.data(&aggregate)
}

/// Checks a report by itself: airtime and idle time are all of the time, up to the end of an exchange.
fn check(report: &MediumReport) {
    const MAX_NS: u64 = 6_000_000;
    let counted = report.airtime.elapsed_ns();
    assert!((report.elapsed_ns..report.elapsed_ns + MAX_NS).contains(&counted), "{report:?}");
    let of_nodes: u64 = report.nodes.iter().map(|node| node.busy_ns()).sum();
    let airtime = report.airtime;
    assert_eq!(of_nodes, airtime.busy_ns() - airtime.collision_ns, "{report:?}");
    assert_eq!(report.frames.overruns, 0, "{report:?}");
    assert!(report.lateness.exchanges > 0, "{report:?}");
}

/// The shortest round trip that ping prints, nanoseconds.
fn shortest(said: &str) -> f64 {
    let numbers = said.split("min/avg/max/mdev = ").nth(1).unwrap_or_else(|| panic!("{said}"));
    1e6 * numbers.split('/').next().unwrap().parse::<f64>().unwrap()
}

#[test]
fn a_round_trip_takes_the_airtime_of_its_frames() {
    const PAYLOAD: u32 = 1400;
    const ICMP_HEADER: u32 = 8;
    const COUNT: u64 = 20;
    for (time, security, cipher) in [
        (WifiClock::Virtual, wpa2("sixteen bytes ok"), Cipher::Wpa2),
        (WifiClock::Real, Security::Open, Cipher::Open),
    ] {
        let program = Program::new();
        let mut network =
            network(&program, WifiSettings { clock: time, ..WifiSettings::default() }, security);
        check(&network.hosted.state.medium);
        for (family, (word, _, receiver)) in Family::ALL.iter().zip(ADDRESSES) {
            let before = network.hosted.medium_report().unwrap();
            let size = PAYLOAD.to_string();
            let count = COUNT.to_string();
            let said =
                network.run(SENDER, &["ping", word, "-n", "-i", "0.2", "-s", &size, "-c", &count, receiver]);
            let after = network.hosted.medium_report().unwrap();
            check(&after);
            // To the access point, on to the other station, and both ways back.
            let exchange = exchange(PAYLOAD + ICMP_HEADER + family.header_bytes(), cipher);
            let least = 4 * exchange.ppdu.total_ns() + 3 * (exchange.response_ns + aifs_ns());
            let round_trip = shortest(&said);
            println!(
                "note: {time} {family}: round trip {round_trip} ns, least {least} ns, {:?}",
                after.lateness
            );
            assert!(round_trip >= least as f64, "{time} {family}: {round_trip} ns < {least} ns: {said}");
            if time == WifiClock::Virtual {
                // Four backoffs of 15 slots at most, and the programs' own time.
                assert!(round_trip < least as f64 + 1e6, "{family}: {round_trip} ns, {least} ns: {said}");
            }
            let data = after.airtime.data_ns - before.airtime.data_ns;
            let of_ping = 4 * COUNT * exchange.ppdu.data_ns;
            assert!((of_ping..2 * of_ping + 100_000_000).contains(&data), "{data} ns, of ping {of_ping} ns");
        }
    }
}

fn aifs_ns() -> u64 {
    Edca::default_of(Role::Station, AccessCategory::BestEffort).aifs_ns(Band::Ghz2)
}

/// Processes that keep the machine busy.
struct Load(Vec<Child>);

impl Load {
    fn begin() -> Self {
        let spin = ["-c", "while :; do :; done"];
        Load((0..2).map(|_| Command::new("sh").args(spin).spawn().unwrap()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a network of this security and seed does, beside a load or not: the medium's report after it was built and
/// after each of some trials, with a digest of all events; and what the hosts reported of each trial.
fn course(
    security: &Security,
    seed: u64,
    load: bool,
    trials: &[(Family, Transport)],
) -> (Vec<MediumReport>, Vec<Vec<HostReport>>) {
    const LENGTH_NS: u64 = 200_000_000;
    let _load = load.then(Load::begin);
    let program = Program::new();
    require_root();
    enter().unwrap();
    let settings = WifiSettings { seed, ..WifiSettings::default() };
    let spec = WifiSpec::new(settings, security.clone(), [security.clone(), security.clone()]).unwrap();
    // With commands, it would not stand still between requests.
    let booted = WifiHosted::boot(&"uml-full".parse().unwrap(), &spec, &program.path(), 0);
    let (mut hosted, [sender, _, receiver], _) = booted.unwrap_or_else(|error| panic!("{error}"));
    let mut agents = meet([("sender", sender), ("receiver", receiver)]);
    let mut reports = vec![hosted.state.medium.clone()];
    let mut seen = Vec::new();
    for (number, (family, transport)) in trials.iter().enumerate() {
        hosted.look(Some(seed + number as u64)).unwrap().unwrap();
        let to = ADDRESSES.map(|(_, _, receiver)| receiver)[usize::from(*family == Family::Ipv6)];
        let cell = Cell::new(*family, *transport, SizeOf::Write, 1408);
        seen.push(flood(&cell, to, LENGTH_NS, &mut agents).host_reports);
        reports.push(hosted.medium_report().unwrap());
    }
    (reports, seen)
}

#[test]
fn network_in_virtual_time_repeats_to_the_bit() {
    let trials =
        [(Family::Ipv4, Transport::Udp), (Family::Ipv6, Transport::Tcp), (Family::Ipv6, Transport::Udp)];
    let secured = wpa2("sixteen bytes ok");
    let first = course(&secured, 1, false, &trials);
    println!("note: {:?}", first.0);
    first.0.iter().for_each(check);
    assert!(first.0.iter().map(|report| report.frames.delivered).is_sorted_by(|a, b| a + 50 < *b));
    let again = course(&secured, 1, true, &trials);
    assert_eq!(again.0, first.0, "beside a load");
    assert_eq!(again.1, first.1, "beside a load");
    assert_ne!(course(&secured, 2, false, &[]).0[0].digest, first.0[0].digest, "of another seed");
    // SAE draws more random numbers than a handshake of WPA2, and computes longer.
    let sae = Security::Wpa3(Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap());
    let [first, again] = [false, true].map(|load| course(&sae, 1, load, &trials[..1]));
    assert_eq!(again, first, "WPA3 beside a load");
}
