//! A Wi-Fi network in this system: three hosts in namespaces, a radio for each, and a medium between the radios.

use super::access_point;
use super::carrier::{Carrier, Watch};
use super::check::check;
use super::daemon::Daemon;
use super::nl80211::move_radio;
use super::spec::{Association, SSID, WifiSpec, WifiState};
use super::station::{NotAssociated, Station};
use crate::error::{Attempt, TestbedError};
use crate::host::launch::Host;
use crate::image::wifi::{FOLDER, VERSIONS};
use crate::kernel::sysctl;
use crate::link::addressing::{BSSID, INTERFACE, access_point_addresses, addresses, hardware_address};
use crate::link::configure::{configure_access_point, configure_end};
use crate::link::interface::{name_by_hardware, raise};
use crate::link::offload::switch_off_all;
use crate::link::quiescence::wait_until_quiet;
use crate::topology::Node;
use stacklab_model::wifi;
use stacklab_model::{Family, Role};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// A Wi-Fi network. Dropping it ends its hosts and daemons, and removes its radios.
#[derive(Debug)]
pub(crate) struct WifiNetwork {
    /// The network's state after it was built.
    pub state: WifiState,
    stations: [Station; 2],
    access_point: Daemon,
    hosts: [Host; 3],
    carrier: Carrier,
}

/// The hosts in path order. Their radios have the same place in names.
const NODES: [Node; 3] = [Node::Sender, Node::AccessPoint, Node::Receiver];
const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

impl WifiNetwork {
    /// Starts `program args` as each host in a network namespace of its own, and joins them by Wi-Fi. The daemons'
    /// files are in the folder. What is on air is written to the capture. On return both stations are associated, and
    /// packets of both families have crossed the access point.
    ///
    /// # Errors
    /// The step that failed, and its host; or why a station is not associated.
    pub fn build(
        spec: &WifiSpec,
        program: &Path,
        args: &[impl AsRef<OsStr>],
        folder: &Path,
        capture: Option<&Path>,
    ) -> Result<Self, TestbedError> {
        let hosts = hosts(program, args)?;
        let [sender, access_point, receiver] = &hosts;
        let hardware = [hardware_address(Role::Sender), BSSID, hardware_address(Role::Receiver)];
        let names = [0, 1, 2].map(|number| format!("radio{number}"));
        let radios = [0, 1, 2].map(|place| {
            let is_station = NODES[place] != Node::AccessPoint;
            let role = if is_station { wifi::Role::Station } else { wifi::Role::AccessPoint };
            (names[place].as_str(), hardware[place], role)
        });
        let carrier = Carrier::start(&radios, spec.settings(), capture);
        let carrier = carrier.map_err(|fault| fault.at(Node::AccessPoint))?;
        for ((host, name), hardware) in hosts.iter().zip(&names).zip(hardware) {
            move_radio(name, host.pid()).map_err(|fault| fault.at(host.node()))?;
            host.inside(|| name_by_hardware(INTERFACE, hardware))?;
        }
        let daemon = access_point::start(access_point.pid(), spec, &folder.join("access-point"));
        let daemon = daemon.map_err(|fault| fault.at(Node::AccessPoint))?;
        access_point.inside(configure_access_point)?;
        // Both stations look for the network at the same time.
        let start = |place: usize, host: &Host| {
            host.inside(|| raise(INTERFACE, spec.settings().mtu))?;
            let own = folder.join(host.node().name());
            let station = Station::start(host.pid(), spec, &spec.stations()[place], &own);
            station.map_err(|fault| fault.at(host.node()))
        };
        let mut stations = [start(0, sender)?, start(1, receiver)?];
        let mut associated = Vec::new();
        for ((station, host), role) in stations.iter_mut().zip([sender, receiver]).zip(ROLES) {
            associated.push(associate(station, host, spec)?);
            host.inside(|| configure_end(role))?;
        }
        for host in &hosts {
            host.inside(|| switch_off_all(INTERFACE))?;
            host.inside(|| wait_until_quiet(INTERFACE, &host.addresses()))?;
        }
        let mut checks = Vec::new();
        for family in Family::ALL {
            checks.push(check([sender, receiver], carrier.watch(), spec, *family)?);
        }
        let Ok(associated) = <[Association; 2]>::try_from(associated) else { unreachable!("two stations") };
        let programs = fs::read_to_string(Path::new("/").join(FOLDER).join(VERSIONS)).unwrap_or_default();
        let medium = carrier.watch().report();
        let state = WifiState { stations: associated, checks, medium, programs };
        Ok(WifiNetwork { state, stations, access_point: daemon, hosts, carrier })
    }

    /// Looks at the network again: both associations, and a packet of each family on the medium. From then on the
    /// medium draws from the seed, if one is given.
    ///
    /// # Errors
    /// What is not as planned.
    pub fn look(&mut self, spec: &WifiSpec, seed: Option<u64>) -> Result<WifiState, TestbedError> {
        let WifiNetwork { stations, access_point, hosts: [sender, at, receiver], carrier, state } = self;
        access_point.check().attempt("keep the access point running").map_err(|fault| fault.at(at.node()))?;
        let mut looked = state.clone();
        for (number, host) in [&*sender, &*receiver].into_iter().enumerate() {
            looked.stations[number] = associate(&mut stations[number], host, spec)?;
        }
        for seen in &mut looked.checks {
            *seen = check([sender, receiver], carrier.watch(), spec, seen.family)?;
        }
        if let Some(seed) = seed {
            carrier.watch().reseed(seed);
        }
        looked.medium = carrier.watch().report();
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

fn hosts(program: &Path, args: &[impl AsRef<OsStr>]) -> Result<[Host; 3], TestbedError> {
    let mut hosts = Vec::new();
    for node in NODES {
        let addresses = match node {
            Node::Sender => addresses(Role::Sender),
            Node::Receiver => addresses(Role::Receiver),
            _ => access_point_addresses().map(|(address, _)| address),
        };
        let host = Host::start(node, addresses, program, args, &[])?;
        host.inside(sysctl::silence)?;
        hosts.push(host);
    }
    let Ok(hosts) = <[Host; 3]>::try_from(hosts) else { unreachable!("one host for each node") };
    Ok(hosts)
}

/// Waits for a station's association, and compares it with the plan.
fn associate(station: &mut Station, host: &Host, spec: &WifiSpec) -> Result<Association, TestbedError> {
    let failed = |reason: String| TestbedError::NotAssociated {
        station: host.node(),
        network: SSID.to_owned(),
        reason,
    };
    let joined = host.inside(|| Ok(station.associate()))?;
    let association = joined.map_err(|error| match error {
        NotAssociated::Fault(fault) => fault.at(host.node()),
        NotAssociated::Reason(reason) => failed(reason),
    })?;
    match contradiction(&association, spec) {
        None => Ok(association),
        Some(reason) => Err(failed(reason)),
    }
}

/// The first difference between an association and the plan.
fn contradiction(association: &Association, spec: &WifiSpec) -> Option<String> {
    let Association { channel, ssid, cipher, .. } = association;
    let pairs = [
        ("network", ssid.clone(), SSID.to_owned()),
        ("frequency in MHz", channel.frequency.to_string(), spec.settings().frequency().to_string()),
        ("width in MHz", channel.width.to_string(), spec.settings().width.mhz().to_string()),
        ("cipher", cipher.clone(), spec.access_point().cipher().to_owned()),
    ];
    let different = pairs.into_iter().find(|(_, found, planned)| found != planned);
    different
        .map(|(what, found, planned)| format!("it is associated, and the {what} is {found}, not {planned}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::nl80211::Channel;
    use crate::wifi::spec::Security;

    #[test]
    fn an_association_is_compared_with_the_plan() {
        let spec = WifiSpec::with_security(Security::Open);
        let channel = Channel { frequency: 2412, width: 40, center: 2422 };
        let none = || "NONE".to_owned();
        let bssid = "02:00:00:00:00:03".to_owned();
        let good =
            Association { channel, ssid: SSID.to_owned(), bssid, cipher: none(), key_management: none() };
        assert_eq!(contradiction(&good, &spec), None);
        let narrow = Association { channel: Channel { width: 20, ..good.channel }, ..good.clone() };
        let said = contradiction(&narrow, &spec).unwrap();
        assert_eq!(said, "it is associated, and the width in MHz is 20, not 40");
        let secured = Association { cipher: "CCMP".to_owned(), ..good };
        assert!(contradiction(&secured, &spec).unwrap().contains("cipher is CCMP, not NONE"));
    }
}
