//! A Wi-Fi network inside user-mode Linux: two stations and an access point, with the real programs of a Wi-Fi
//! network and the kernel's own 802.11. The tests need root, `ping`, and the user-mode Linux that is made here
//! (uml-full).

use crate::support;

use stacklab_guests::shell::{MAX_COMMANDS, listen, run_in_guest};
use stacklab_guests::{WifiHosted, WifiStreams};
use stacklab_model::Family;
use stacklab_model::wifi::{Width, WifiSettings};
use stacklab_testbed::{TestbedError, enter};
use stacklab_wifi::{CarriedFrame, Passphrase, Security, WifiSpec};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::program::{Program, require_root};

pub(crate) const ADDRESSES: [(&str, &str, &str); 2] =
    [("-4", "198.18.0.1", "198.18.0.2"), ("-6", "2001:2:0:1::1", "2001:2:0:1::2")];
/// The hosts by their number for commands.
pub(crate) const SENDER: usize = 0;
const RECEIVER: usize = 2;
/// The programs of the guest's image, as a command sees them that has this machine's files.
const IMAGE: &str = "/proc/1/root/wifi";
/// Within this time a network is refused. An access point tries a handshake for four seconds.
const SOON: Duration = Duration::from_secs(20);

pub(crate) fn wpa2(passphrase: &str) -> Security {
    Security::Wpa2(Passphrase::try_from(passphrase.to_owned()).unwrap())
}

/// A network in a guest, and where commands on its hosts are asked for.
pub(crate) struct Network {
    pub hosted: WifiHosted,
    /// The agents of sender, access point and receiver.
    pub agents: WifiStreams,
    socket: PathBuf,
}

pub(crate) fn boot(program: &Program, spec: &WifiSpec) -> Result<Network, TestbedError> {
    require_root();
    enter().unwrap();
    let (hosted, agents, commands) =
        WifiHosted::boot(&"uml-full".parse().unwrap(), spec, &program.path(), MAX_COMMANDS)?;
    let socket = program.work().join("commands");
    listen(&socket, commands).unwrap();
    Ok(Network { hosted, agents, socket })
}

impl Network {
    /// What a command on a host prints.
    pub(super) fn run(&self, host: usize, command: &[&str]) -> String {
        let ended = run_in_guest(&self.socket, host, command).unwrap();
        let output = String::from_utf8_lossy(&ended.output).into_owned();
        assert_eq!(ended.code, 0, "{command:?}: {output}{}", String::from_utf8_lossy(&ended.errors));
        output
    }

    /// What iw, the other tool that reads the kernel, says of a station's interface.
    fn iw(&self, host: usize, what: &str) -> String {
        let [loader, iw] = ["ld-linux-x86-64.so.2", "iw"].map(|file| format!("{IMAGE}/{file}"));
        let words = [&loader, "--library-path", IMAGE, &iw, "dev", "st0"].into_iter().chain(what.split(' '));
        self.run(host, &words.collect::<Vec<_>>())
    }
}

/// Checks a network of this security. Returns the frames of each family's packet, on both hops.
fn frames(security: &Security, cipher: &str, key_management: &str) -> Vec<(Family, [CarriedFrame; 2])> {
    let program = Program::new();
    let network = boot(&program, &WifiSpec::with_security(security.clone()));
    let network = network.unwrap_or_else(|error| panic!("{error}"));
    let state = &network.hosted.state;
    for (station, host) in state.stations.iter().flatten().zip([SENDER, RECEIVER]) {
        assert_eq!((station.ssid.as_str(), station.bssid.as_str()), ("stacklab", "02:00:00:00:00:03"));
        assert_eq!((station.cipher.as_str(), station.key_management.as_str()), (cipher, key_management));
        let channel = station.channel;
        assert_eq!((channel.frequency, channel.width, channel.center), (2412, 40, 2422));
        let info = network.iw(host, "info");
        assert!(info.contains("channel 1 (2412 MHz), width: 40 MHz, center1: 2422 MHz"), "{info}");
        let link = network.iw(host, "link");
        assert!(link.contains("Connected to 02:00:00:00:00:03") && link.contains("SSID: stacklab"), "{link}");
    }
    assert!(
        state.programs.contains("hostapd ") && state.programs.contains("wpasupplicant "),
        "{}",
        state.programs
    );
    for (family, sender, receiver) in ADDRESSES {
        for (host, to) in [(SENDER, receiver), (RECEIVER, sender)] {
            let said = network.run(host, &["ping", family, "-n", "-c", "3", "-i", "0.2", "-W", "2", to]);
            assert!(said.contains("3 packets transmitted, 3 received, 0% packet loss"), "{said}");
        }
    }
    let mut frames = Vec::new();
    for check in &state.checks {
        frames.push((check.family, check.hops.map(|hop| hop.expect("both ends are stations"))));
    }
    let guest = network.hosted.process();
    drop(network);
    assert!(!Path::new(&format!("/proc/{guest}")).exists(), "the guest has ended");
    frames
}

#[test]
fn stations_reach_each_other_and_ccmp_adds_16_bytes() {
    let open = frames(&Security::Open, "NONE", "NONE");
    let protected = frames(&wpa2("sixteen bytes ok"), "CCMP", "WPA2-PSK");
    for frames in [&open, &protected] {
        let families: Vec<Family> = frames.iter().map(|(family, _)| *family).collect();
        assert_eq!(families, Family::ALL);
    }
    for ((family, open), (_, protected)) in open.iter().zip(&protected) {
        for (open, protected) in open.iter().zip(protected) {
            assert!(!open.protected && protected.protected, "{family}");
            assert_eq!(protected.bytes, open.bytes + 16, "{family}");
        }
    }
    // The headers differ by the families' 20 bytes, and by nothing else.
    assert_eq!(open[1].1[0].bytes, open[0].1[0].bytes + 20);
}

#[test]
fn channel_is_as_asked_and_stations_sleep_if_allowed() {
    let program = Program::new();
    for (channel, width, power_save, expected) in
        [(11, Width::Mhz20, false, (2462, 20, 2462)), (11, Width::Mhz40, true, (2462, 40, 2452))]
    {
        let settings = WifiSettings { channel, width, power_save, ..WifiSettings::default() };
        let spec = WifiSpec::new(settings, Security::Open, [Security::Open, Security::Open]).unwrap();
        let network = boot(&program, &spec).unwrap_or_else(|error| panic!("{error}"));
        for station in network.hosted.state.stations.iter().flatten() {
            let channel = station.channel;
            assert_eq!((channel.frequency, channel.width, channel.center), expected);
        }
        let saved = network.iw(RECEIVER, "get power_save");
        assert!(saved.contains(if power_save { "on" } else { "off" }), "{saved}");
        // A receiver that sleeps is told of its frames by the next beacon, up to 102.4 ms later.
        let (family, _, receiver) = ADDRESSES[0];
        let said = network.run(SENDER, &["ping", family, "-n", "-c", "4", "-i", "0.5", receiver]);
        let figures = said.split("mdev = ").nth(1).unwrap().split('/').take(2);
        let figures: Vec<f64> = figures.map(|figure| figure.parse().unwrap()).collect();
        println!("note: power save {power_save}: least and mean round trip {figures:?} ms");
        // Other load can only lengthen some.
        assert!(if power_save { figures[1] > 10.0 } else { figures[0] < 5.0 }, "{power_save}: {said}");
    }
}

/// The error of a network whose access point and stations do not fit, which must come soon.
fn refusal(access_point: Security, stations: [Security; 2]) -> String {
    let program = Program::new();
    let spec = WifiSpec::new(WifiSettings::default(), access_point, stations).unwrap();
    let start = Instant::now();
    let error = boot(&program, &spec).map(drop).unwrap_err().to_string();
    assert!(start.elapsed() < SOON, "after {:?}: {error}", start.elapsed());
    error
}

#[test]
fn a_wrong_passphrase_is_said_with_its_station() {
    for of in [Security::Wpa2, Security::Wpa3] {
        let [right, wrong] = ["sixteen bytes ok", "sixteen bytes no"]
            .map(|text| of(Passphrase::try_from(text.to_owned()).unwrap()));
        let error = refusal(right.clone(), [right, wrong]);
        let expected =
            "the receiver is not associated with the Wi-Fi network stacklab: the passphrase is wrong";
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("sixteen bytes"), "a passphrase is not printed: {error}");
    }
}

#[test]
fn station_does_not_join_a_network_of_other_security() {
    let right = wpa2("sixteen bytes ok");
    let error = refusal(Security::Open, [right, Security::Open]);
    let expected = "the sender is not associated with the Wi-Fi network stacklab: the station expects WPA2, and the network is open";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn image_without_wifi_is_refused_with_the_remedy() {
    let program = Program::new();
    let spec = WifiSpec::with_security(Security::Open);
    let booted = WifiHosted::boot(&"uml".parse().unwrap(), &spec, &program.path(), 0);
    let error = booted.map(drop).unwrap_err().to_string();
    assert!(error.contains("uml has no Wi-Fi") && error.contains("stacklab image build uml-full"), "{error}");
}
