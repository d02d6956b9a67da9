//! With whom an agent may exchange traffic.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Addresses and networks to which an agent may send, and from which it receives.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    /// The coordinator's addresses.
    pub addresses: Vec<IpAddr>,
    /// Networks that the operator allows.
    pub networks: Vec<Network>,
}

impl Peers {
    /// Whether an address is one of them. A link-local one is none: on another link it is another host's.
    pub fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()) {
            return false;
        }
        self.addresses.contains(&address) || self.networks.iter().any(|network| network.holds(address))
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
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                (own.to_bits() ^ other.to_bits()) & mask == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                (own.to_bits() ^ other.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, or one address.
impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a network such as 192.0.2.0/24 or 2001:db8::/32".to_owned();
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| expected()))?;
        if bits > most {
            return Err(expected());
        }
        Ok(Network { address, bits })
    }
}

/// As it is read.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
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
    fn a_link_local_address_is_nobodys() {
        let peers =
            Peers { addresses: vec![ip("fe80::1"), ip("10.9.0.2")], networks: vec!["::/0".parse().unwrap()] };
        assert!(!peers.hold(ip("fe80::1")) && peers.hold(ip("10.9.0.2")) && peers.hold(ip("2001:db8::9")));
    }
}
