//! Two real machines on existing networks: this one, and machines reached with the user's ssh; or this host and a
//! listening agent, over both families.

use crate::CampaignError;
use crate::rig::adapter::Adapter;
use crate::rig::addresses::read_addresses;
use crate::rig::agent::{AgentProcess, agent_on};
use crate::rig::host_pair::{HostPair, names, planned_path};
use crate::rig::ssh::{ask, on, relay};
use crate::rig::{CellSet, CpuCover, Rig, RigKind, RigNetwork};
use crate::trial::{AdapterEvidence, Evidence};
use stacklab_model::{Cell, Family, LinkConfig, Role, ScopedAddr, Services, Station, System, Systems};
use stacklab_study::{RealHost, Study};
use stacklab_testbed::{AGENT, Streams};
use stacklab_traffic::foreign::may_choose_congestion_control;
use stacklab_traffic::host::zone::Route;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::Path;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

/// A machine with an agent on it.
pub struct Machine {
    system: System,
    _agent: AgentProcess,
    addresses: BTreeMap<Family, ScopedAddr>,
    /// Its Wi-Fi adapter on the network under test, if it is Wi-Fi there.
    adapter: Option<Adapter>,
}

pub(super) type Reached = (Machine, Streams);

/// Connects to the real machines of each pair, and copies this program there if `copies`, or else if the user agrees.
/// Call it before anything else: ssh finds the user's keys by user id, which changes when namespaces are created by
/// other users than root.
pub fn reach(study: &Study, copies: bool) -> Result<Vec<(Systems, [Reached; 2])>, CampaignError> {
    let pairs = study.systems().into_iter().filter(|systems| !systems.are_built());
    let reached = pairs.map(|systems| {
        let [sender, receiver] = &systems.0;
        let machines = [Machine::reach(sender, study, copies)?, Machine::reach(receiver, study, copies)?];
        for ((machine, _), other) in machines.iter().zip([receiver, sender]) {
            machine.adapter.as_ref().map_or(Ok(()), |adapter| adapter.check_control_path(other))?;
        }
        Ok((systems, machines))
    });
    reached.collect()
}

impl Machine {
    fn reach(system: &System, study: &Study, copies: bool) -> Result<Reached, CampaignError> {
        let program = match system {
            System::Ssh(host) => agent_on(host, copies)?.to_owned(),
            _ => std::env::current_exe().map_err(|reason| no_agent(system, reason))?.display().to_string(),
        };
        let known = study.hosts.iter().find(|host| host.system == *system);
        let addresses = addresses(system, known)?;
        let adapter = Adapter::find(system, &addresses.values().map(ScopedAddr::ip).collect::<Vec<_>>())?;
        let [agent, stdio] = AGENT;
        let mut command = on(system, &[&program, agent, stdio]);
        if matches!(system, System::Ssh(_)) {
            command.stderr(Stdio::piped());
        }
        let spawned = AgentProcess::spawn(&mut command);
        let (mut agent, streams) = spawned.map_err(|reason| no_agent(system, reason))?;
        if let Some(errors) = agent.take_errors() {
            relay(system, errors);
        }
        Ok((Machine { system: system.clone(), _agent: agent, addresses, adapter }, streams))
    }
}

struct Remote {
    machines: [Machine; 2],
    /// The states of the machines' Wi-Fi adapters when the trial began.
    before: [Option<Result<Station, String>>; 2],
}

pub(super) fn remote(
    study: &Study,
    systems: &Systems,
    services: &Services,
    [(sender, to_sender), (receiver, to_receiver)]: [Reached; 2],
    interrupted: &'static AtomicBool,
) -> Result<Rig, CampaignError> {
    let streams = [to_sender, to_receiver];
    let kinds = systems.0.each_ref().map(|system| system.kind().to_owned());
    let ends = HostPair::connect(systems, names(systems, services), kinds, streams, interrupted)?;
    let is = RigKind {
        cells: CellSet::OfHosts(systems.clone(), services.clone()),
        here: systems.0.contains(&System::Localhost),
        ..RigKind::default()
    };
    let LinkConfig { mtu, rate, .. } = study.link_config;
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
    let adapters = [&sender, &receiver].into_iter().filter_map(|machine| machine.adapter.as_ref());
    let wifi: String = adapters.map(|adapter| format!(", Wi-Fi at {adapter}")).collect();
    let description =
        format!("{} and {} on their own network, MTU {mtu}{rate}{wifi}", sender.system, receiver.system);
    let network = Remote { machines: [sender, receiver], before: [None, None] };
    Ok(Rig::new(ends, is, description, network))
}

impl Remote {
    fn look(&self) -> [Option<Result<Station, String>>; 2] {
        self.machines.each_ref().map(|machine| machine.adapter.as_ref().map(Adapter::look))
    }
}

impl RigNetwork for Remote {
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = self.machines.each_ref().map(|machine| {
            let address = machine.addresses.get(&cell.family).cloned();
            address.expect("a checked study's machines have addresses of its families")
        });
        planned_path(addresses, link_config, cell)
    }

    fn begin(&mut self, _: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        self.before = self.look();
        Ok(())
    }

    fn end(&mut self, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let before = std::mem::take(&mut self.before);
        let after = self.look();
        let mut pairs = before.into_iter().zip(after).map(|(before, after)| Some([before?, after?]));
        let adapters: [Option<AdapterEvidence>; 2] = [0, 1].map(|_| pairs.next().flatten());
        evidence.iter_mut().for_each(|arm| arm.adapters = adapters.clone());
        Ok(())
    }
}

fn no_agent(system: &System, reason: io::Error) -> CampaignError {
    CampaignError::Unreachable(format!("could not start an agent on {system}: {reason}"))
}

/// The addresses that the study names, otherwise those of the interface that it names.
fn addresses(
    system: &System,
    known: Option<&RealHost>,
) -> Result<BTreeMap<Family, ScopedAddr>, CampaignError> {
    let Some(RealHost { interface, addresses, .. }) = known else { return Ok(BTreeMap::new()) };
    let mut found = addresses.clone();
    for address in found.values() {
        check_zone(system, address)?;
    }
    if let Some(interface) = interface {
        for address in read_interface_addresses(system, interface, "global")? {
            found.entry(Family::of(address)).or_insert(address.into());
        }
        for family in Family::ALL {
            if !found.contains_key(family) {
                return Err(CampaignError::Unreachable(format!(
                    "{interface} of {system} has no global {family} address: name another one of its addresses in [[host]], as {family} = \"..\""
                )));
            }
        }
    }
    Ok(found)
}

/// Whether a machine has a link-local address on the interface that the study names as its zone: otherwise each trial
/// would fail.
fn check_zone(system: &System, address: &ScopedAddr) -> Result<(), CampaignError> {
    let Some(zone) = address.zone() else { return Ok(()) };
    // This way the tool takes an index.
    let interface =
        if zone.bytes().all(|byte| byte.is_ascii_digit()) { format!("if{zone}") } else { zone.to_owned() };
    if read_interface_addresses(system, &interface, "link")?.contains(&address.ip()) {
        return Ok(());
    }
    Err(CampaignError::Unreachable(format!("{zone} of {system} does not have the address {}", address.ip())))
}

fn read_interface_addresses(
    system: &System,
    interface: &str,
    scope: &str,
) -> Result<Vec<IpAddr>, CampaignError> {
    let quoted = format!("'{}'", interface.replace('\'', ""));
    let name = if matches!(system, System::Ssh(_)) { quoted.as_str() } else { interface };
    let words = ["ip", "-o", "addr", "show", "dev", name, "scope", scope];
    let listed = ask(system, &words, &format!("read the addresses of {interface}"))?;
    Ok(read_addresses(&listed).into_iter().map(|(_, address)| address).collect())
}

/// The way to another host in each family; in reverse, that host is the sender.
struct BothFamilies {
    ways: BTreeMap<Family, Way>,
    reverse: bool,
}

/// The way to the other host in one family.
pub struct Way {
    /// From this host.
    pub here: Route,
    /// The other host's address, with its zone as this host names it.
    pub there: ScopedAddr,
}

/// Sends hello to the agents, this host's first, then that of the host that the user names so.
pub(super) fn both_families(
    name: String,
    ways: BTreeMap<Family, Way>,
    reverse: bool,
    mut agents: [AgentClient; 2],
) -> Result<Rig, AgentError> {
    let mut systems = [System::Localhost, System::Ssh(name.clone())];
    let mut kinds = ["this host".to_owned(), name.clone()];
    if reverse {
        agents.reverse();
        systems.reverse();
        kinds.reverse();
    }
    let described = describe_ways(ways.values().map(|way| (&way.there, &way.here)));
    let description = format!("{} {name}: {described}", if reverse { "from" } else { "to" });
    let names = names(&Systems::NAMESPACES, &Services::default());
    let ends = HostPair::handshake(Systems(systems), names, kinds, agents)?;
    let is = RigKind {
        here: true,
        cubic: may_choose_congestion_control("cubic"),
        cpu: CpuCover::Machines,
        ..RigKind::default()
    };
    Ok(Rig::new(ends, is, description, BothFamilies { ways, reverse }))
}

/// The address of another host in each family, and the interface that leads there.
pub(super) fn describe_ways<'a>(ways: impl Iterator<Item = (&'a ScopedAddr, &'a Route)>) -> String {
    let mut described = Vec::new();
    for (there, here) in ways {
        described.push(format!("{there} over {} (MTU {})", here.interface, here.mtu));
    }
    described.join(", ")
}

impl RigNetwork for BothFamilies {
    fn path(&self, _: &LinkConfig, cell: &Cell) -> Path {
        let Way { here, there } = &self.ways[&cell.family];
        // Its zone is called so here only.
        let here_address = here.address.clone();
        let there = there.elsewhere();
        let [sender, receiver] = if self.reverse { [there, here_address] } else { [here_address, there] };
        Path {
            // Nothing need be let in here.
            opener: Some(if self.reverse { Role::Receiver } else { Role::Sender }),
            // The other family's traffic crosses the interfaces, too; on the loopback interface, both directions do.
            shared: self.ways.len() > 1,
            ..Path::without_plan(sender, receiver, here.mtu)
        }
    }
}
