//! The host that a measurement goes to: its addresses, and those of this host to measure from.

use crate::connection::{ReachError, connect};
use crate::source::SourceAddresses;
use crate::tls::Fingerprint;
use stacklab_model::{Family, ScopedAddr, say};
use stacklab_traffic::host::names::to_ascii;
use stacklab_traffic::host::zone::{self, written_here};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

/// The host to reach, and how.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its name or addresses, separated by commas.
    pub host: &'a str,
    /// The agent's port.
    pub port: u16,
    /// The only family; default: those of `from`, or both.
    pub family: Option<Family>,
    /// The addresses of this host to measure from.
    pub from: Option<&'a SourceAddresses>,
    /// The file with the agent's key.
    pub key_file: Option<&'a Path>,
    /// TLS with the agent of this fingerprint.
    pub tls: Option<Fingerprint>,
}

impl Target<'_> {
    /// The address of this host to measure from to this one.
    pub fn source_to(&self, there: &ScopedAddr) -> Option<&ScopedAddr> {
        self.from?.of(Family::of(there.ip()))
    }

    /// Whether this family is asked for.
    fn has_family(&self, family: Family) -> bool {
        match (self.family, self.from) {
            (Some(only), _) => only == family,
            (None, Some(from)) => from.of(family).is_some(),
            (None, None) => true,
        }
    }

    /// The families that are asked for, if not all are.
    fn describe_families(&self) -> String {
        let asked: Vec<&str> = Family::ALL
            .iter()
            .filter(|family| self.has_family(**family))
            .map(|family| family.name())
            .collect();
        if asked.len() == Family::ALL.len() { String::new() } else { format!("{} ", asked.join(" or ")) }
    }
}

/// Where an agent may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAddress {
    /// With its zone as the user names it.
    pub address: ScopedAddr,
    /// As this host's kernel takes it, with the port.
    pub socket: SocketAddr,
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address.with_port(self.socket.port()))
    }
}

/// The addresses on the host in the requested families, each once, in the order of preference of this system.
pub fn addresses(target: &Target) -> Result<Vec<AgentAddress>, ReachError> {
    let &Target { host, port, from, .. } = target;
    let all = look_up(host, port)?;
    check_sources(target)?;
    let right: Vec<&ScopedAddr> =
        all.iter().filter(|address| target.has_family(Family::of(address.ip()))).collect();
    if right.is_empty() {
        let has: Vec<String> = all.iter().map(ScopedAddr::to_string).collect();
        let has = has.join(", ");
        return Err(match from {
            Some(from) if target.family.is_none() => ReachError::Usage(format!(
                "--from {from} is of another family than {host} ({has}): name an address of this host in its family"
            )),
            _ => unknown(host, &format!("it has no {}address, only {has}", target.describe_families())),
        });
    }
    // A name may lead to link-local addresses, and only some resolvers say in which zone.
    let mut found: Vec<AgentAddress> = Vec::new();
    let mut reason = String::new();
    for address in right {
        let socket = zone::socket_addr(address, port).and_then(|socket| match target.source_to(address) {
            Some(from) => zone::ends(from, socket).map(|_| socket),
            None => Ok(socket),
        });
        match socket {
            Ok(socket) if found.iter().all(|before| before.socket != socket) => {
                found.push(AgentAddress { address: address.clone(), socket });
            }
            Ok(_) => {}
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    if found.is_empty() { Err(ReachError::Usage(reason)) } else { Ok(found) }
}

/// The addresses of a name, or of addresses and names that are separated by commas.
fn look_up(host: &str, port: u16) -> Result<Vec<ScopedAddr>, ReachError> {
    let mut all = Vec::new();
    for name in host.split(',') {
        // Brackets as in a URL.
        let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if name.contains('%') || name.parse::<IpAddr>().is_ok() {
            all.push(written_here(name).map_err(ReachError::Usage)?);
        } else if name.contains(':') {
            return Err(ReachError::Usage(format!(
                "`{name}` is neither a host name nor an address: name the agent's port with --port"
            )));
        } else {
            let ascii = to_ascii(name).map_err(ReachError::Usage)?;
            let found =
                (&*ascii, port).to_socket_addrs().map_err(|error| unknown(host, &error.to_string()))?;
            all.extend(found.map(ScopedAddr::from));
        }
    }
    Ok(all)
}

/// Checks that this host has the addresses to measure from, and one of the requested family.
fn check_sources(target: &Target) -> Result<(), ReachError> {
    let Some(from) = target.from else { return Ok(()) };
    if let Some(asked) = target.family
        && from.of(asked).is_none()
    {
        return Err(ReachError::Usage(format!("--from {from} is not an {asked} address")));
    }
    for address in from.all() {
        if let Err(reason) = zone::socket_addr(address, 0).and_then(UdpSocket::bind) {
            let advice = "name an address of this host, as `ip address` shows them";
            return Err(ReachError::Usage(format!("cannot measure --from {address}: {reason}; {advice}")));
        }
    }
    Ok(())
}

fn unknown(host: &str, reason: &str) -> ReachError {
    ReachError::Unreachable(format!("could not look up the host `{host}`: {reason}; check its name"))
}

/// An address of the host in each family: the first, or where there are several, the first that accepts a connection.
/// Those before it are named with the reason.
pub fn both_families(target: &Target) -> Result<BTreeMap<Family, AgentAddress>, ReachError> {
    let mut chosen = BTreeMap::new();
    for (family, all) in candidates(target)? {
        chosen.insert(family, first_that_accepts(target, all));
    }
    Ok(chosen)
}

/// The first address of each family, for peers that accept no connection.
pub fn first_of_both_families(target: &Target) -> Result<BTreeMap<Family, AgentAddress>, ReachError> {
    let mut chosen = BTreeMap::new();
    for (family, mut all) in candidates(target)? {
        chosen.insert(family, all.swap_remove(0));
    }
    Ok(chosen)
}

/// The addresses of each family, of which none is without one.
fn candidates(target: &Target) -> Result<BTreeMap<Family, Vec<AgentAddress>>, ReachError> {
    if let Some(from) = target.from
        && let Some(missing) = Family::ALL.iter().find(|family| from.of(**family).is_none())
    {
        return Err(ReachError::Usage(format!(
            "--from {from} has no {missing} address, and --against measures both families: name one address of each, \
             as in 192.0.2.7,2001:db8::7"
        )));
    }
    let mut candidates: BTreeMap<Family, Vec<AgentAddress>> = BTreeMap::new();
    for address in addresses(target)? {
        candidates.entry(Family::of(address.address.ip())).or_default().push(address);
    }
    if let Some(missing) = Family::ALL.iter().find(|family| !candidates.contains_key(family)) {
        return Err(ReachError::Unreachable(format!(
            "{} has no {missing} address: name a host that has both, or both addresses of one, as in 192.0.2.7,2001:db8::7",
            target.host
        )));
    }
    Ok(candidates)
}

/// The first address that accepts a connection. A single one is not tried: there is no other. If none does, it is the
/// first, and the measurement says why it fails.
fn first_that_accepts(target: &Target, all: Vec<AgentAddress>) -> AgentAddress {
    let first = all[0].clone();
    if all.len() == 1 {
        return first;
    }
    let mut failed = Vec::new();
    for address in all {
        match connect(address.socket, target.source_to(&address.address)) {
            Ok(_) => {
                name_failures(&failed, &address);
                return address;
            }
            Err(reason) => failed.push((address, reason)),
        }
    }
    first
}

/// Names the addresses of a host that were tried before the one that is measured, and why they failed.
pub fn name_failures(failed: &[(AgentAddress, io::Error)], taken: &AgentAddress) {
    for (address, reason) in failed {
        say!("stacklab: {address} does not accept a connection ({reason}): the next address is tried");
    }
    if !failed.is_empty() {
        say!("stacklab: measuring to {taken}");
    }
}
