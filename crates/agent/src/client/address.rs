//! Where an agent may listen: the addresses of its host.

use super::{ReachError, Target};
use stacklab_model::{Family, ScopedAddr};
use stacklab_traffic::host::zone::{self, written_here};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Where an agent may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAddress {
    /// The address, with its zone as the user names it.
    pub address: ScopedAddr,
    /// As this host's kernel takes it, with the port.
    pub socket: SocketAddr,
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address.with_port(self.socket.port()))
    }
}

/// The addresses on the host in the requested family, each once.
///
/// # Errors
/// If it has none, or none that `from` can reach.
pub fn addresses(target: &Target) -> Result<Vec<AgentAddress>, ReachError> {
    let &Target { host, port, family, from, .. } = target;
    let unknown = |reason: String| {
        ReachError::Unreachable(format!("could not look up the host `{host}`: {reason}; check its name"))
    };
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
            let found = (name, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
            all.extend(found.map(ScopedAddr::from));
        }
    }
    let asked = family.or_else(|| from.map(|from| Family::of(from.ip())));
    if let (Some(asked), Some(from)) = (asked, from)
        && asked != Family::of(from.ip())
    {
        return Err(ReachError::Usage(format!("--from {from} is not an {asked} address")));
    }
    if let Some(from) = from {
        let bound = zone::socket_addr(from, 0).and_then(UdpSocket::bind);
        if let Err(reason) = bound.map(drop) {
            let advice = "name an address of this host, as `ip address` shows them";
            return Err(ReachError::Usage(format!("cannot measure --from {from}: {reason}; {advice}")));
        }
    }
    let is_right = |address: &&ScopedAddr| asked.is_none_or(|asked| asked == Family::of(address.ip()));
    let right: Vec<&ScopedAddr> = all.iter().filter(is_right).collect();
    if right.is_empty() {
        let family = asked.map_or_else(String::new, |asked| format!("{asked} "));
        let has: Vec<String> = all.iter().map(ScopedAddr::to_string).collect();
        if let (Some(from), None) = (from, target.family) {
            return Err(ReachError::Usage(format!(
                "--from {from} is of another family than {host} ({}): name an address of this host in its family",
                has.join(", ")
            )));
        }
        return Err(unknown(format!("it has no {family}address, only {}", has.join(", "))));
    }
    // A name may lead to link-local addresses, and only some resolvers say in which zone.
    let (mut found, mut reason) = (Vec::new(), String::new());
    for address in right {
        let socket = zone::socket_addr(address, port).and_then(|socket| match from {
            Some(from) => zone::ends(from, socket).map(|_| socket),
            None => Ok(socket),
        });
        match socket {
            Ok(socket) => found.push(AgentAddress { address: address.clone(), socket }),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    found.dedup();
    if found.is_empty() { Err(ReachError::Usage(reason)) } else { Ok(found) }
}

/// The first address of the host in each family.
///
/// # Errors
/// If it lacks one.
pub fn both_families(target: &Target) -> Result<BTreeMap<Family, AgentAddress>, ReachError> {
    let mut found = BTreeMap::new();
    for address in addresses(target)? {
        found.entry(Family::of(address.address.ip())).or_insert(address);
    }
    match Family::ALL.iter().find(|family| !found.contains_key(family)) {
        None => Ok(found),
        Some(missing) => Err(ReachError::Unreachable(format!(
            "{} has no {missing} address: name a host that has both, or both addresses of one, as in 192.0.2.7,2001:db8::7",
            target.host
        ))),
    }
}
