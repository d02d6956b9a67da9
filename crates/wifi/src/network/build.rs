//! A Wi-Fi network in this system: hosts in namespaces, radios for them, and a medium between the radios.

use crate::network::access_point;
use crate::network::background::{self, Background, Entries, Neighbours};
use crate::network::check::check;
use crate::network::station::{self, Station};
use crate::radios::carrier::{Carrier, Radio};
use crate::radios::netlink::move_radio;
use crate::{Association, Daemon, FOLDER, SSID, VERSIONS, Watch, WifiSpec, WifiState};
use stacklab_model::wifi::{self, Attachment, WifiSettings};
use stacklab_model::{Family, Role};
use stacklab_testbed::addressing::{
    access_point_addresses, bridged_address, station_addresses, station_hardware_address,
};
use stacklab_testbed::kernel::netlink::{name_by_hardware, raise, wait_until_quiet};
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::link::{
    configure_access_point, configure_end, configure_station, create_bridge, create_veth, switch_off_all,
};
use stacklab_testbed::{
    AtHost, Attempt, BRIDGE, BSSID, Host, INTERFACE, MIDDLE, Node, TestbedError, addresses, hardware_address,
};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A Wi-Fi network. Dropping it ends its hosts and daemons, and removes its radios.
#[derive(Debug)]
pub struct WifiNetwork {
    /// The network's state after it was built.
    pub state: WifiState,
    /// Each station with the place of its host.
    stations: Vec<(usize, Station)>,
    background: Option<Background>,
    neighbours: Option<Neighbours>,
    access_point: Daemon,
    hosts: Vec<Host>,
    carrier: Carrier,
}

/// The places of hosts, in path order, and of the medium's nodes. The other stations follow.
const SENDER: usize = 0;
const ACCESS_POINT: usize = 1;
const RECEIVER: usize = 2;

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
        let settings = &spec.settings;
        let others = (1..=settings.stations).map(Node::Station);
        let nodes = [Node::Sender, Node::AccessPoint, Node::Receiver].into_iter().chain(others);
        let hosts: Vec<Host> = nodes.map(|node| host(node, program, args)).collect::<Result<_, _>>()?;
        let at = &hosts[ACCESS_POINT];
        let is_wired = settings.receiver == Attachment::Wired;
        let radios = hosts.iter().zip(0..).map(|(host, number)| radio(host.node(), number, is_wired));
        let radios: Vec<Option<Radio>> = radios.collect();
        let carrier = Carrier::start(&radios, settings, capture).at(at.node())?;
        for (host, radio) in hosts.iter().zip(&radios) {
            let Some((name, hardware, _)) = radio else { continue };
            move_radio(name, host.pid()).at(host.node())?;
            host.inside(|| name_by_hardware(INTERFACE, *hardware))?;
        }
        if is_wired {
            wire(at, &hosts[RECEIVER], settings.mtu)?;
        }
        let access_point = access_point::start(at.pid(), spec, &folder.join("access-point")).at(at.node())?;
        let own = if is_wired { BRIDGE } else { INTERFACE };
        at.inside(|| configure_access_point(own))?;
        let mut stations = Vec::new();
        for (place, host) in hosts.iter().enumerate().filter(|(place, _)| radios[*place].is_some()) {
            let security = match place {
                ACCESS_POINT => continue,
                SENDER => &spec.stations[0],
                RECEIVER => &spec.stations[1],
                _ => &spec.access_point,
            };
            host.inside(|| station::prepare(spec))?;
            let station = Station::start(host.pid(), spec, security, &folder.join(host.node().name()));
            stations.push((place, station.at(host.node())?));
        }
        let associated = associate_all(&mut stations, &hosts, spec)?;
        hosts[SENDER].inside(|| configure_end(Role::Sender))?;
        hosts[RECEIVER].inside(|| configure_end(Role::Receiver))?;
        for (other, number) in hosts[RECEIVER + 1..].iter().zip(1..) {
            other.inside(|| configure_station(number))?;
        }
        for host in &hosts {
            let interface = if host.node() == Node::AccessPoint { own } else { INTERFACE };
            host.inside(|| switch_off_all(INTERFACE))?;
            host.inside(|| wait_until_quiet(interface, &host.addresses()))?;
        }
        let ends = [&hosts[SENDER], &hosts[RECEIVER]];
        let checks = Family::ALL.iter().map(|family| check(ends, carrier.watch(), spec, *family));
        let checks = checks.collect::<Result<_, _>>()?;
        let background = background(&hosts)?;
        let neighbours = neighbours(settings, ends)?;
        let programs = fs::read_to_string(Path::new("/").join(FOLDER).join(VERSIONS)).unwrap_or_default();
        let medium = carrier.watch().report();
        let state = WifiState { stations: associated.0, others: associated.1, checks, medium, programs };
        Ok(WifiNetwork { state, stations, background, neighbours, access_point, hosts, carrier })
    }

    /// Looks at the network again: all associations, and a packet of each family on the medium, while other stations
    /// send nothing. With a seed a trial begins: the medium draws from it from then on, other stations send, and
    /// neighbour entries have their lifetime.
    pub fn look(&mut self, spec: &WifiSpec, seed: Option<u64>) -> Result<WifiState, TestbedError> {
        let WifiNetwork { stations, background, neighbours, access_point, hosts, carrier, state } = self;
        background.iter_mut().for_each(Background::end);
        neighbours.iter_mut().try_for_each(Neighbours::end).at(Node::Sender)?;
        access_point.check().attempt("keep the access point running").at(Node::AccessPoint)?;
        let mut looked = state.clone();
        (looked.stations, looked.others) = associate_all(stations, hosts, spec)?;
        for seen in &mut looked.checks {
            *seen = check([&hosts[SENDER], &hosts[RECEIVER]], carrier.watch(), spec, seen.family)?;
        }
        looked.medium = carrier.watch().report();
        if let Some(seed) = seed {
            carrier.watch().reseed(seed);
            background.iter_mut().try_for_each(Background::begin).at(Node::AccessPoint)?;
            neighbours.iter_mut().try_for_each(Neighbours::begin).at(Node::Sender)?;
        }
        Ok(looked)
    }

    /// The network's medium, to look at.
    pub fn medium(&self) -> &Watch {
        self.carrier.watch()
    }

    /// The hosts: sender, access point, receiver.
    pub fn hosts_mut(&mut self) -> &mut [Host] {
        &mut self.hosts[..=RECEIVER]
    }
}

fn host(node: Node, program: &Path, args: &[impl AsRef<OsStr>]) -> Result<Host, TestbedError> {
    let addresses = match node {
        Node::Sender => addresses(Role::Sender),
        Node::Receiver => addresses(Role::Receiver),
        Node::Station(number) => station_addresses(number).map(|(address, _)| address),
        _ => access_point_addresses().map(|(address, _)| address),
    };
    let host = Host::start(node, addresses, program, args, &[])?;
    host.inside(sysctl::silence)?;
    Ok(host)
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
    access_point.inside(|| create_veth([MIDDLE; 2], mtu, receiver.pid(), [near, hardware]))?;
    receiver.inside(|| {
        name_by_hardware(INTERFACE, hardware)?;
        raise(INTERFACE, mtu)
    })?;
    access_point.inside(|| {
        sysctl::write(&format!("ipv6/conf/{INTERFACE}/disable_ipv6"), "1")?;
        switch_off_all(MIDDLE)?;
        create_bridge(BRIDGE, BSSID, MIDDLE)
    })
}

/// Waits for the association of each station, and compares it with the plan: those of the ends, and of the others.
fn associate_all(
    stations: &mut [(usize, Station)],
    hosts: &[Host],
    spec: &WifiSpec,
) -> Result<([Option<Association>; 2], Vec<Association>), TestbedError> {
    let mut ends = [None, None];
    let mut others = Vec::new();
    for (place, station) in stations {
        let association = associate(station, &hosts[*place], spec)?;
        match *place {
            SENDER => ends[0] = Some(association),
            RECEIVER => ends[1] = Some(association),
            _ => others.push(association),
        }
    }
    Ok((ends, others))
}

/// The traffic of other stations, over IPv4 for every study alike; `None` if there are none.
fn background(hosts: &[Host]) -> Result<Option<Background>, TestbedError> {
    let at = &hosts[ACCESS_POINT];
    let others = &hosts[RECEIVER + 1..];
    if others.is_empty() {
        return Ok(None);
    }
    let to = at.address(Family::Ipv4);
    let sink = at.inside(|| background::sink(to))?;
    let mut sockets = Vec::new();
    for host in others {
        sockets.push(host.inside(|| background::socket(host.address(Family::Ipv4), to))?);
    }
    Ok(Some(Background::new(sink, sockets)))
}

/// The neighbour entries of both ends; `None` if they live for ever.
fn neighbours(settings: &WifiSettings, ends: [&Host; 2]) -> Result<Option<Neighbours>, TestbedError> {
    let Some(lifetime_ns) = settings.neighbour_lifetime_ns else { return Ok(None) };
    let [sender, receiver] = ends;
    let of_sender = sender.inside(|| Entries::open(receiver.addresses()))?;
    let of_receiver = receiver.inside(|| Entries::open(sender.addresses()))?;
    Ok(Some(Neighbours::new(Duration::from_nanos(lifetime_ns), [of_sender, of_receiver])))
}

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

fn contradiction(association: &Association, spec: &WifiSpec) -> Option<String> {
    let Association { channel, ssid, cipher, key_management, management_cipher, power_save, .. } =
        association;
    let settings = &spec.settings;
    let keys = spec.access_point.keys();
    let protected = keys.is_some_and(|(.., protected)| protected == 2);
    // Ciphers and key management as wpa_supplicant names them.
    let pairs = [
        ("network", ssid.clone(), SSID.to_owned()),
        ("frequency in MHz", channel.frequency.to_string(), settings.frequency().to_string()),
        ("width in MHz", channel.width.to_string(), settings.width.mhz().to_string()),
        ("cipher", cipher.clone(), keys.map_or("NONE", |_| "CCMP").to_owned()),
        ("key management", key_management.clone(), keys.map_or("NONE", |(_, _, name, _)| name).to_owned()),
        (
            "cipher of management frames",
            management_cipher.clone().unwrap_or_else(|| "NONE".to_owned()),
            if protected { "BIP" } else { "NONE" }.to_owned(),
        ),
        ("power save", name_switch(*power_save), name_switch(settings.power_save)),
    ];
    for (what, found, planned) in pairs {
        if found != planned {
            return Some(format!("it is associated, and the {what} is {found}, not {planned}"));
        }
    }
    None
}

fn name_switch(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::{Passphrase, Security};
    use crate::radios::netlink::Channel;

    #[test]
    fn an_association_is_compared_with_the_plan() {
        let spec = WifiSpec::with_security(Security::Open);
        let channel = Channel { frequency: 2412, width: 40, center: 2422 };
        let bssid = "02:00:00:00:00:03".to_owned();
        let good = Association {
            channel,
            ssid: SSID.to_owned(),
            bssid,
            cipher: "NONE".to_owned(),
            key_management: "NONE".to_owned(),
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
