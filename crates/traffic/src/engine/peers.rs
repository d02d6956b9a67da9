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
        let in_network = || self.networks.iter().any(|network| network.holds(address.ip()));
        !address.lacks_zone()
            && (self.addresses.contains(address) || !address.is_link_local() && in_network())
    }
}

/// A network: an address, and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether an address is in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let other = address.to_canonical();
        let differs = bits(self.address) ^ bits(other);
        let beyond = differs.checked_shr(128 - u32::from(self.bits)).unwrap_or(0);
        self.address.is_ipv4() == other.is_ipv4() && beyond == 0
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, or one address.
impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a network such as 192.0.2.0/24 or 2001:db8::/32".to_owned();
        let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| expected()))?;
        if bits > most {
            return Err(expected());
        }
        Ok(Network { address, bits })
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
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(DataPorts(Some(first..=last))),
            _ => Err("expected a port such as 5203, or ports such as 5203-5206".to_owned()),
        }
    }
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

    #[test]
    fn networks_are_read_and_hold_what_is_in_them() {
        let network = |text: &str| text.parse::<Network>();
        assert!(network("192.0.2.0/24").unwrap().holds(ip("192.0.2.255")));
        assert!(!network("192.0.2.0/24").unwrap().holds(ip("192.0.3.0")));
        assert!(network("0.0.0.0/0").unwrap().holds(ip("203.0.113.9")));
        assert!(!network("0.0.0.0/0").unwrap().holds(ip("::1")));
        assert!(network("2001:db8::/32").unwrap().holds(ip("2001:db8:ffff::1")));
        assert!(network("::/0").unwrap().holds(ip("::1")) && network("::1").unwrap().holds(ip("::1")));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "net/8", "10.0.0.0/-1"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn link_local_address_is_a_peer_in_its_zone_only() {
        let scoped = |text: &str| text.parse::<ScopedAddr>().unwrap();
        let addresses = ["fe80::1%3", "fe80::2", "10.9.0.2"].map(scoped).to_vec();
        let peers = Peers { addresses, networks: vec!["::/0".parse().unwrap()] };
        for own in ["fe80::1%3", "10.9.0.2", "2001:db8::9"] {
            assert!(peers.hold(&scoped(own)), "{own}");
        }
        for other in ["fe80::1", "fe80::1%4", "fe80::2", "fe80::2%3", "fe80::9%3", "10.9.0.3"] {
            assert!(!peers.hold(&scoped(other)), "{other}");
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
        let free = |free: u16| {
            move |port| if port == free { Ok(port) } else { Err(io::ErrorKind::AddrInUse.into()) }
        };
        assert_eq!(ports.first_free(free(5204)).unwrap(), 5204);
        assert_eq!(DataPorts::default().first_free(free(0)).unwrap(), 0);
        assert!(ports.hold(5203) && ports.hold(5204) && !ports.hold(5205) && !DataPorts::default().hold(0));
        let taken = ports.first_free(free(1)).unwrap_err().to_string();
        assert!(taken.contains("port 5203-5204 is in use"), "{taken}");
        let refused = ports.first_free(|_| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
