//! Real machines: this one, and machines reached with the user's ssh.

use crate::CampaignError;
use crate::rig::adapter::Adapter;
use crate::rig::agent_copy::{Copying, agent_on};
use crate::rig::agent_process::AgentProcess;
use crate::rig::ssh::{ask, on, relay};
use stacklab_model::{Family, ScopedAddr, System, Systems};
use stacklab_study::{RealHost, Study};
use stacklab_testbed::{AGENT, Streams};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::process::Stdio;

/// A machine with an agent on it.
pub struct RemoteHost {
    pub(crate) system: System,
    _agent: AgentProcess,
    addresses: BTreeMap<Family, ScopedAddr>,
    /// Its Wi-Fi adapter on the network under test, if it is Wi-Fi there.
    pub(crate) adapter: Option<Adapter>,
}

/// A machine, with the streams of its agent.
pub type Reached = (RemoteHost, Streams);

/// Connects to the real machines of each pair. Call it before anything else: ssh finds the user's keys by user id,
/// which changes when namespaces are created without root.
pub fn reach(study: &Study, copying: Copying) -> Result<Vec<(Systems, [Reached; 2])>, CampaignError> {
    let pairs = study.systems().into_iter().filter(|systems| !systems.are_built());
    let reached = pairs.map(|systems| {
        let [sender, receiver] = &systems.0;
        let machines =
            [RemoteHost::reach(sender, study, copying)?, RemoteHost::reach(receiver, study, copying)?];
        for ((machine, _), other) in machines.iter().zip([receiver, sender]) {
            machine.adapter.as_ref().map_or(Ok(()), |adapter| adapter.check_control_path(other))?;
        }
        Ok((systems, machines))
    });
    reached.collect()
}

impl RemoteHost {
    fn reach(system: &System, study: &Study, copying: Copying) -> Result<Reached, CampaignError> {
        let program = match system {
            System::Ssh(host) => agent_on(host, copying)?,
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
        Ok((RemoteHost { system: system.clone(), _agent: agent, addresses, adapter }, streams))
    }

    /// Its address on the network under test, as this machine names it.
    ///
    /// # Panics
    /// For a family without an address in a checked study.
    pub(crate) fn address(&self, family: Family) -> ScopedAddr {
        self.addresses
            .get(&family)
            .cloned()
            .expect("a checked study's machines have addresses of its families")
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
        for (family, address) in listed(system, interface, "global")? {
            found.entry(family).or_insert(address.into());
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
    if listed(system, &interface, "link")?.contains(&(Family::Ipv6, address.ip())) {
        return Ok(());
    }
    Err(CampaignError::Unreachable(format!("{zone} of {system} does not have the address {}", address.ip())))
}

/// The addresses of an interface, in their order.
fn listed(system: &System, interface: &str, scope: &str) -> Result<Vec<(Family, IpAddr)>, CampaignError> {
    let quoted = format!("'{}'", interface.replace('\'', ""));
    let name = if matches!(system, System::Ssh(_)) { quoted.as_str() } else { interface };
    let words = ["ip", "-o", "addr", "show", "dev", name, "scope", scope];
    Ok(read_list(&ask(system, &words, &format!("read the addresses of {interface}"))?))
}

/// The address of each line: `2: eth0    inet 192.0.2.7/24 brd .. scope global eth0`.
pub fn read_list(listed: &str) -> Vec<(Family, IpAddr)> {
    let address = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| !word.starts_with("inet"));
        let address = words.nth(1)?.split('/').next()?.parse().ok()?;
        Some((Family::of(address), address))
    };
    listed.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_their_order() {
        let listed = "2: e    inet 192.0.2.7/24 brd 192.0.2.255 scope global e\\ valid\n\
                      2: e    inet 192.0.2.8/24 scope global secondary e\\\n\
                      2: e    inet6 2001:db8::7/64 scope global \\\n";
        let [first, second, third] =
            ["192.0.2.7", "192.0.2.8", "2001:db8::7"].map(|text| text.parse().unwrap());
        assert_eq!(read_list(listed), [(Family::Ipv4, first), (Family::Ipv4, second), (Family::Ipv6, third)]);
    }
}
