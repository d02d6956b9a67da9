//! A Wi-Fi network in this system: hosts in namespaces, radios for them, and a medium between the radios.

use crate::network::access_point;
use crate::network::background::{self, Background};
use crate::network::check::check;
use crate::network::daemon::{Daemon, FOLDER, VERSIONS};
use crate::network::neighbours::{Entries, Neighbours};
use crate::network::spec::{Association, SSID, Security, WifiSpec, WifiState};
use crate::network::station::{self, Station};
use crate::radios::carrier::{Carrier, Radio, Watch};
use crate::radios::nl80211::move_radio;
use stacklab_model::wifi::{self, Attachment, WifiSettings};
use stacklab_model::{Family, Role};
use stacklab_testbed::error::{Attempt, TestbedError};
use stacklab_testbed::host::launch::Host;
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::link::addressing::{
    BRIDGE, BSSID, INTERFACE, MIDDLE, access_point_addresses, addresses, bridged_address, hardware_address,
    station_addresses, station_hardware_address,
};
use stacklab_testbed::link::configure::{configure_access_point, configure_end, configure_station};
use stacklab_testbed::link::interface::{name_by_hardware, raise};
use stacklab_testbed::link::offload::switch_off_all;
use stacklab_testbed::link::quiescence::wait_until_quiet;
use stacklab_testbed::link::{bridge, veth};
use stacklab_testbed::topology::Node;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A Wi-Fi network. Dropping it ends its hosts and daemons, and removes its radios.
#[derive(Debug)]
pub struct WifiNetwork {
    /// The network's state after it was built.
    pub state: WifiState,
    /// The sender's, the receiver's unless it is on a wire, and the other stations'.
    stations: Vec<Station>,
    background: Option<Background>,
    neighbours: Option<Neighbours>,
    access_point: Daemon,
    hosts: [Host; 3],
    others: Vec<Host>,
    carrier: Carrier,
}

/// The hosts at the ends and between them in path order. The medium's nodes have the same order, before the others.
const NODES: [Node; 3] = [Node::Sender, Node::AccessPoint, Node::Receiver];

impl WifiNetwork {
    /// Starts `program args` as each host in a separate network namespace, and joins them by Wi-Fi. The daemons'
    /// files are in the folder. What is on air is written to the capture. On return all stations are associated, and
    /// packets of both families have crossed the access point.
    pub fn build(
        spec: &WifiSpec,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        folder: &Path,
        capture: Option<&Path>,
    ) -> Result<Self, TestbedError> {
        let settings = spec.settings();
        let (hosts, others) = hosts(settings, program, args)?;
        let [sender, access_point, receiver] = &hosts;
        let is_wired = settings.receiver == Attachment::Wired;
        let all = || hosts.iter().chain(&others);
        let radios = all().zip(0..).map(|(host, number)| radio(host.node(), number, is_wired));
        let radios: Vec<Option<Radio>> = radios.collect();
        let carrier = Carrier::start(&radios, settings, capture);
        let carrier = carrier.map_err(|fault| fault.at(Node::AccessPoint))?;
        for (host, (name, hardware, _)) in
            all().zip(&radios).filter_map(|(host, radio)| Some((host, radio.as_ref()?)))
        {
            move_radio(name, host.pid()).map_err(|fault| fault.at(host.node()))?;
            host.inside(|| name_by_hardware(INTERFACE, *hardware))?;
        }
        if is_wired {
            wire(access_point, receiver, settings.mtu)?;
        }
        let daemon = access_point::start(access_point.pid(), spec, &folder.join("access-point"));
        let daemon = daemon.map_err(|fault| fault.at(Node::AccessPoint))?;
        let own = if is_wired { BRIDGE } else { INTERFACE };
        access_point.inside(|| configure_access_point(own))?;
        // All stations look for the network at the same time.
        let mut stations = Vec::new();
        for (host, security) in station_hosts(&hosts, &others, spec) {
            let folder = folder.join(host.node().name());
            host.inside(|| station::prepare(spec))?;
            let station = Station::start(host.pid(), spec, security, &folder);
            stations.push(station.map_err(|fault| fault.at(host.node()))?);
        }
        let associated = associate_all(&mut stations, &hosts, &others, spec)?;
        sender.inside(|| configure_end(Role::Sender))?;
        receiver.inside(|| configure_end(Role::Receiver))?;
        for (other, number) in others.iter().zip(1..) {
            other.inside(|| configure_station(number))?;
        }
        for host in all() {
            let interface = if host.node() == Node::AccessPoint { own } else { INTERFACE };
            host.inside(|| switch_off_all(INTERFACE))?;
            host.inside(|| wait_until_quiet(interface, &host.addresses()))?;
        }
        let mut checks = Vec::new();
        for family in Family::ALL {
            checks.push(check([sender, receiver], carrier.watch(), spec, *family)?);
        }
        let background = background(access_point, &others)?;
        let neighbours = neighbours(settings, sender, receiver)?;
        let programs = fs::read_to_string(Path::new("/").join(FOLDER).join(VERSIONS)).unwrap_or_default();
        let medium = carrier.watch().report();
        let (stations_of_ends, of_others) = ends_and_others(associated, is_wired);
        let state = WifiState { stations: stations_of_ends, others: of_others, checks, medium, programs };
        Ok(WifiNetwork {
            state,
            stations,
            background,
            neighbours,
            access_point: daemon,
            hosts,
            others,
            carrier,
        })
    }

    /// Looks at the network again: all associations, and a packet of each family on the medium, while other stations
    /// send nothing. With a seed a trial begins: the medium draws from it from then on, other stations send, and
    /// neighbour entries have their lifetime.
    pub fn look(&mut self, spec: &WifiSpec, seed: Option<u64>) -> Result<WifiState, TestbedError> {
        let WifiNetwork { stations, background, neighbours, access_point, hosts, others, carrier, state } =
            self;
        let [sender, at, receiver] = &*hosts;
        background.iter_mut().for_each(Background::end);
        neighbours.as_mut().map_or(Ok(()), Neighbours::end).map_err(|fault| fault.at(sender.node()))?;
        access_point.check().attempt("keep the access point running").map_err(|fault| fault.at(at.node()))?;
        let mut looked = state.clone();
        let associated = associate_all(stations, hosts, others, spec)?;
        (looked.stations, looked.others) =
            ends_and_others(associated, spec.settings().receiver == Attachment::Wired);
        for seen in &mut looked.checks {
            *seen = check([sender, receiver], carrier.watch(), spec, seen.family)?;
        }
        looked.medium = carrier.watch().report();
        if let Some(seed) = seed {
            carrier.watch().reseed(seed);
            let begun = background.as_mut().map_or(Ok(()), Background::begin);
            begun.map_err(|fault| fault.at(at.node()))?;
            neighbours.as_mut().map_or(Ok(()), Neighbours::begin).map_err(|fault| fault.at(sender.node()))?;
        }
        Ok(looked)
    }

    /// The network's medium, to look at.
    pub fn medium(&self) -> &Watch {
        self.carrier.watch()
    }

    /// The hosts: sender, access point, receiver.
    pub fn hosts_mut(&mut self) -> &mut [Host; 3] {
        &mut self.hosts
    }
}

fn hosts(
    settings: &WifiSettings,
    program: &Path,
    args: &[impl AsRef<OsStr>],
) -> Result<([Host; 3], Vec<Host>), TestbedError> {
    let start = |node| {
        let addresses = match node {
            Node::Sender => addresses(Role::Sender),
            Node::Receiver => addresses(Role::Receiver),
            Node::Station(number) => station_addresses(number).map(|(address, _)| address),
            _ => access_point_addresses().map(|(address, _)| address),
        };
        let host = Host::start(node, addresses, program, args, &[])?;
        host.inside(sysctl::silence)?;
        Ok(host)
    };
    let [sender, access_point, receiver] = NODES.map(start);
    let others: Result<_, TestbedError> = (1..=settings.stations).map(Node::Station).map(start).collect();
    Ok(([sender?, access_point?, receiver?], others?))
}

/// A host's radio, by its place among the hosts; `None` of a receiver on a wire.
fn radio(node: Node, place: usize, is_wired: bool) -> Option<Radio> {
    let (hardware, role) = match node {
        Node::AccessPoint => (BSSID, wifi::Role::AccessPoint),
        Node::Receiver if is_wired => return None,
        Node::Receiver => (hardware_address(Role::Receiver), wifi::Role::Station),
        Node::Station(number) => (station_hardware_address(number), wifi::Role::Station),
        _ => (hardware_address(Role::Sender), wifi::Role::Station),
    };
    Some((format!("radio{place}"), hardware, role))
}

/// Lays a wire between the access point and the receiver, and a bridge to it, which hostapd gives its interface to.
fn wire(access_point: &Host, receiver: &Host, mtu: u32) -> Result<(), TestbedError> {
    let hardware = hardware_address(Role::Receiver);
    let near = bridged_address(hardware);
    access_point.inside(|| veth::create(MIDDLE, mtu, receiver.pid(), [near, hardware]))?;
    receiver.inside(|| {
        name_by_hardware(INTERFACE, hardware)?;
        raise(INTERFACE, mtu)
    })?;
    access_point.inside(|| {
        // Otherwise it sends its own IPv6 packets.
        sysctl::write(&format!("ipv6/conf/{INTERFACE}/disable_ipv6"), "1")?;
        switch_off_all(MIDDLE)?;
        bridge::create(BRIDGE, BSSID, MIDDLE)
    })
}

/// The hosts that are stations, and the security of each: the sender, the receiver unless it is on a wire, and the
/// others, which have the access point's.
fn station_hosts<'a>(
    [sender, _, receiver]: &'a [Host; 3],
    others: &'a [Host],
    spec: &'a WifiSpec,
) -> impl Iterator<Item = (&'a Host, &'a Security)> {
    let ends = [sender, receiver].into_iter().zip(spec.stations());
    let stations = if spec.settings().receiver == Attachment::Wired { 1 } else { 2 };
    ends.take(stations).chain(others.iter().map(|other| (other, spec.access_point())))
}

fn associate_all(
    stations: &mut [Station],
    hosts: &[Host; 3],
    others: &[Host],
    spec: &WifiSpec,
) -> Result<Vec<Association>, TestbedError> {
    let each = stations.iter_mut().zip(station_hosts(hosts, others, spec));
    each.map(|(station, (host, _))| associate(station, host, spec)).collect()
}

/// The associations of the ends and of the others, of those of all stations.
fn ends_and_others(all: Vec<Association>, is_wired: bool) -> ([Option<Association>; 2], Vec<Association>) {
    let mut all = all.into_iter();
    let sender = all.next();
    let receiver = if is_wired { None } else { all.next() };
    ([sender, receiver], all.collect())
}

/// The traffic of other stations, over IPv4 for every study alike; `None` if there are none.
fn background(access_point: &Host, others: &[Host]) -> Result<Option<Background>, TestbedError> {
    if others.is_empty() {
        return Ok(None);
    }
    let to = access_point.address(Family::Ipv4);
    let sink = access_point.inside(|| background::sink(to))?;
    let socket = |host: &Host| host.inside(|| background::socket(host.address(Family::Ipv4), to));
    let sockets: Result<_, TestbedError> = others.iter().map(socket).collect();
    Ok(Some(Background::new(sink, sockets?)))
}

/// The neighbour entries of both ends; `None` if they live for ever.
fn neighbours(
    settings: &WifiSettings,
    sender: &Host,
    receiver: &Host,
) -> Result<Option<Neighbours>, TestbedError> {
    let Some(lifetime_ns) = settings.neighbour_lifetime_ns else { return Ok(None) };
    let entries = |host: &Host, peer: &Host| host.inside(|| Entries::open(peer.addresses()));
    let ends = [entries(sender, receiver)?, entries(receiver, sender)?];
    Ok(Some(Neighbours::new(Duration::from_nanos(lifetime_ns), ends)))
}

/// Waits for a station's association, and compares it with the plan.
fn associate(station: &mut Station, host: &Host, spec: &WifiSpec) -> Result<Association, TestbedError> {
    let node = host.node();
    let failed = |reason: String| {
        TestbedError(format!("the {node} is not associated with the Wi-Fi network {SSID}: {reason}"))
    };
    let association = host.inside(|| station.associate())?.map_err(failed)?;
    match contradiction(&association, spec) {
        None => Ok(association),
        Some(reason) => Err(failed(reason)),
    }
}

/// The first difference between an association and the plan.
fn contradiction(association: &Association, spec: &WifiSpec) -> Option<String> {
    let Association { channel, ssid, cipher, key_management, management_cipher, power_save, .. } =
        association;
    let (settings, security) = (spec.settings(), spec.access_point());
    let cipher_or_none = |cipher: Option<&str>| cipher.unwrap_or("NONE").to_owned();
    let state = |sleeps: bool| if sleeps { "on" } else { "off" }.to_owned();
    let pairs = [
        ("network", ssid.clone(), SSID.to_owned()),
        ("frequency in MHz", channel.frequency.to_string(), settings.frequency().to_string()),
        ("width in MHz", channel.width.to_string(), settings.width.mhz().to_string()),
        ("cipher", cipher.clone(), security.cipher().to_owned()),
        ("key management", key_management.clone(), security.key_management().to_owned()),
        (
            "cipher of management frames",
            cipher_or_none(management_cipher.as_deref()),
            cipher_or_none(security.management_cipher()),
        ),
        ("power save", state(*power_save), state(settings.power_save)),
    ];
    let different = pairs.into_iter().find(|(_, found, planned)| found != planned);
    different
        .map(|(what, found, planned)| format!("it is associated, and the {what} is {found}, not {planned}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{Passphrase, Security};
    use crate::radios::nl80211::Channel;

    #[test]
    fn an_association_is_compared_with_the_plan() {
        let spec = WifiSpec::with_security(Security::Open);
        let channel = Channel { frequency: 2412, width: 40, center: 2422 };
        let none = || "NONE".to_owned();
        let bssid = "02:00:00:00:00:03".to_owned();
        let good = Association {
            channel,
            ssid: SSID.to_owned(),
            bssid,
            cipher: none(),
            key_management: none(),
            management_cipher: None,
            power_save: false,
        };
        assert_eq!(contradiction(&good, &spec), None);
        let narrow = Association { channel: Channel { width: 20, ..good.channel }, ..good.clone() };
        let said = contradiction(&narrow, &spec).unwrap();
        assert_eq!(said, "it is associated, and the width in MHz is 20, not 40");
        let asleep = Association { power_save: true, ..good.clone() };
        assert!(contradiction(&asleep, &spec).unwrap().contains("power save is on, not off"));
        let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        let wpa3 = WifiSpec::with_security(Security::Wpa3(passphrase));
        let sae = Association {
            cipher: "CCMP".to_owned(),
            key_management: "SAE".to_owned(),
            management_cipher: Some("BIP".to_owned()),
            ..good.clone()
        };
        assert_eq!(contradiction(&sae, &wpa3), None);
        let bare = Association { management_cipher: None, ..sae.clone() };
        assert!(
            contradiction(&bare, &wpa3).unwrap().contains("cipher of management frames is NONE, not BIP")
        );
        let psk = Association { key_management: "WPA2-PSK".to_owned(), ..sae };
        assert!(contradiction(&psk, &wpa3).unwrap().contains("key management is WPA2-PSK, not SAE"));
        let secured = Association { cipher: "CCMP".to_owned(), ..good };
        assert!(contradiction(&secured, &spec).unwrap().contains("cipher is CCMP, not NONE"));
    }
}
