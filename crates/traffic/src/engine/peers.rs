//! With whom an agent may exchange traffic, and at which ports it receives it.

use stacklab_model::ScopedAddr;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::{fmt, io};

/// Addresses and networks to which an agent may send, and from which it receives.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    /// The coordinator's addresses, as the kernel says them.
    pub addresses: Vec<ScopedAddr>,
    /// Networks that the operator allows.
    pub networks: Vec<Network>,
}

impl Peers {
    /// Whether an address, as the kernel says it, is one of them. A link-local one is another host's in another zone,
    /// and so in no network.
    pub fn hold(&self, address: &ScopedAddr) -> bool {
        if address.lacks_zone() {
            return false;
        }
        if self.addresses.contains(address) {
            return true;
        }
        !address.is_link_local() && self.networks.iter().any(|network| network.holds(address.ip()))
    }
}

/// A network: an address, and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok()?,
            None => most,
        };
        (bits <= most).then_some(Network { address, bits })
    }

    /// Whether an address is in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        let other = address.to_canonical();
        let differs = align_bits(self.address) ^ align_bits(other);
        let beyond = differs.checked_shr(128 - u32::from(self.bits)).unwrap_or(0);
        self.address.is_ipv4() == other.is_ipv4() && beyond == 0
    }
}

/// The bits of an address, of which the first one is the highest.
fn align_bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, or one address.
impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Network::parse(text)
            .ok_or_else(|| "expected a network such as 192.0.2.0/24 or 2001:db8::/32".to_owned())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A port, or several in a row, of which each trial under way takes one per direction; by default any free one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataPorts(Option<RangeInclusive<u16>>);

impl DataPorts {
    /// Whether a port is one of those that are named.
    pub fn hold(&self, port: u16) -> bool {
        self.0.as_ref().is_some_and(|ports| ports.contains(&port))
    }

    /// What `listen` makes at the first port that is free.
    pub(crate) fn first_free<T>(&self, listen: impl Fn(u16) -> io::Result<T>) -> io::Result<T> {
        let Some(ports) = &self.0 else { return listen(0) };
        for port in ports.clone() {
            match listen(port) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                listening => return listening,
            }
        }
        let text = format!(
            "port {self} is in use; each direction takes one: start the agent with more, as in --data-port 5203-5206"
        );
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }
}

impl FromStr for DataPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (parse_port(first), parse_port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(DataPorts(Some(first..=last))),
            _ => Err("expected a port such as 5203, or ports such as 5203-5206".to_owned()),
        }
    }
}

fn parse_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(ports) if ports.start() == ports.end() => write!(f, "{}", ports.start()),
            Some(ports) => write!(f, "{}-{}", ports.start(), ports.end()),
            None => f.write_str("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn parse(network: &str) -> Network {
        network.parse().unwrap()
    }

    fn parse_scoped_address(text: &str) -> ScopedAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_read_and_hold_what_is_in_them() {
        assert!(parse("192.0.2.0/24").holds(ip("192.0.2.255")));
        assert!(!parse("192.0.2.0/24").holds(ip("192.0.3.0")));
        assert!(parse("0.0.0.0/0").holds(ip("203.0.113.9")));
        assert!(!parse("0.0.0.0/0").holds(ip("::1")));
        assert!(parse("2001:db8::/32").holds(ip("2001:db8:ffff::1")));
        assert!(parse("::/0").holds(ip("::1")) && parse("::1").holds(ip("::1")));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "net/8", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn link_local_address_is_a_peer_in_its_zone_only() {
        let addresses = ["fe80::1%3", "fe80::2", "10.9.0.2"].map(parse_scoped_address).to_vec();
        let peers = Peers { addresses, networks: vec!["::/0".parse().unwrap()] };
        for own in ["fe80::1%3", "10.9.0.2", "2001:db8::9"] {
            assert!(peers.hold(&parse_scoped_address(own)), "{own}");
        }
        for other in ["fe80::1", "fe80::1%4", "fe80::2", "fe80::2%3", "fe80::9%3", "10.9.0.3"] {
            assert!(!peers.hold(&parse_scoped_address(other)), "{other}");
        }
    }

    #[test]
    fn reads_ports_and_takes_the_first_free_one() {
        for text in ["5203", "5203-5206"] {
            assert_eq!(text.parse::<DataPorts>().unwrap().to_string(), text);
        }
        for wrong in ["", "0", "0-5", "5-4", "70000", "a", "1-2-3"] {
            assert!(wrong.parse::<DataPorts>().is_err(), "{wrong}");
        }
        let ports: DataPorts = "5203-5204".parse().unwrap();
        assert_eq!(ports.first_free(|port| listen_at(port, 5204)).unwrap(), 5204);
        assert_eq!(DataPorts::default().first_free(|port| listen_at(port, 0)).unwrap(), 0);
        assert!(ports.hold(5203) && ports.hold(5204) && !ports.hold(5205) && !DataPorts::default().hold(0));
        let taken = ports.first_free(|port| listen_at(port, 1)).unwrap_err().to_string();
        assert!(taken.contains("port 5203-5204 is in use"), "{taken}");
        let refused = ports.first_free(|_| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    /// Stands for a system on which only one port is free.
    fn listen_at(port: u16, free: u16) -> io::Result<u16> {
        if port == free { Ok(port) } else { Err(io::ErrorKind::AddrInUse.into()) }
    }
}
