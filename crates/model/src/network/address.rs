//! An address of a host, with its zone if it is link-local (RFC 4007).

use crate::limits::is_control;
use crate::names::json_is_text;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An IPv4 or IPv6 address as one host names it. A link-local IPv6 address is one of a zone, which is an interface of
/// that host: its name or its index. On another host the same zone is called otherwise. Text form: `192.0.2.7`,
/// `2001:db8::7`, `fe80::1%eth0`, `fe80::1%2`.
///
/// An IPv4-mapped address is the IPv4 address. No other address than a link-local one has a zone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopedAddr {
    ip: IpAddr,
    zone: Option<String>,
}

impl ScopedAddr {
    pub fn new(ip: IpAddr, zone: Option<&str>) -> Self {
        let ip = ip.to_canonical();
        ScopedAddr { ip, zone: zone.filter(|_| is_link_local(ip)).map(str::to_owned) }
    }

    /// The address alone. It finds a host only if it is not link-local.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// IPv6 only.
    pub fn is_link_local(&self) -> bool {
        is_link_local(self.ip)
    }

    pub fn lacks_zone(&self) -> bool {
        self.is_link_local() && self.zone.is_none()
    }

    /// The same address for another host, which knows itself what its zone is called.
    pub fn elsewhere(&self) -> Self {
        ScopedAddr { ip: self.ip, zone: None }
    }

    /// [`network_of`] this address, with its zone.
    pub fn network(&self) -> Self {
        ScopedAddr { ip: network_of(self.ip), zone: self.zone.clone() }
    }

    /// Address and port: `192.0.2.7:80`, `[fe80::1%eth0]:80`.
    pub fn with_port(&self, port: u16) -> String {
        if self.ip.is_ipv6() { format!("[{self}]:{port}") } else { format!("{self}:{port}") }
    }
}

/// What one host may have many addresses of: an IPv4 address, or the first 64 bits of an IPv6 address. An IPv4-mapped
/// address is the IPv4 address.
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        ip => ip,
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

impl From<IpAddr> for ScopedAddr {
    fn from(ip: IpAddr) -> Self {
        ScopedAddr::new(ip, None)
    }
}

impl From<SocketAddr> for ScopedAddr {
    fn from(address: SocketAddr) -> Self {
        let index = match address {
            SocketAddr::V6(address) if address.scope_id() > 0 => Some(address.scope_id().to_string()),
            _ => None,
        };
        ScopedAddr::new(address.ip(), index.as_deref())
    }
}

json_is_text!(ScopedAddr);

impl fmt::Display for ScopedAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => f.pad(&format!("{}%{zone}", self.ip)),
            None => self.ip.fmt(f),
        }
    }
}

impl FromStr for ScopedAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, zone) = match text.split_once('%') {
            Some((address, zone)) => (address, Some(zone)),
            None => (text, None),
        };
        let ip = address
            .parse::<IpAddr>()
            .map_err(|_| "expected an address such as 192.0.2.7, 2001:db8::7 or fe80::1%eth0".to_owned())?;
        match zone {
            Some(zone) if !is_link_local(ip.to_canonical()) => {
                Err(format!("only link-local addresses (fe80::/10) have a zone: leave out `%{zone}`"))
            }
            Some(zone) if !is_zone(zone) => {
                Err(format!("`{zone}` is not a zone: expected the name of an interface, or its index"))
            }
            zone => Ok(ScopedAddr::new(ip, zone)),
        }
    }
}

/// Whether a text can be the name of an interface, or an index: not empty, and nothing in it that ends an address in a
/// list, in brackets or before a port.
fn is_zone(zone: &str) -> bool {
    !zone.is_empty() && zone.trim() == zone && !zone.chars().any(ends_address)
}

fn ends_address(c: char) -> bool {
    is_control(c) || matches!(c, '/' | '%' | ',' | ':' | '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ScopedAddr, String> {
        text.parse()
    }

    #[test]
    fn addresses_are_printed_as_they_are_written() {
        for text in
            ["192.0.2.7", "2001:db8::7", "::1", "fe80::1", "fe80::1%eth0", "fe80::1%2", "febf::1%a b.1-2_3"]
        {
            let address = parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<ScopedAddr>(&json).unwrap(), address);
        }
        assert_eq!(parse("fe80::1%eth0").unwrap().with_port(80), "[fe80::1%eth0]:80");
        assert_eq!(parse("192.0.2.7").unwrap().with_port(80), "192.0.2.7:80");
        assert_eq!(parse("::ffff:192.0.2.7").unwrap(), parse("192.0.2.7").unwrap());
    }

    #[test]
    fn only_a_link_local_address_has_a_zone() {
        for (text, word) in [
            ("192.0.2.7%eth0", "leave out `%eth0`"),
            ("2001:db8::7%eth0", "leave out `%eth0`"),
            ("::ffff:169.254.0.1%eth0", "only link-local"),
            ("ff02::1%eth0", "only link-local"),
            ("fec0::1%eth0", "only link-local"),
            ("::1%lo", "leave out `%lo`"),
            ("fe80::1%", "is not a zone"),
            ("fe80::1% eth0", "is not a zone"),
            ("fe80::1%a%b", "is not a zone"),
            ("fe80::1%eth0:80", "is not a zone"),
            ("fe80::1%a/b", "is not a zone"),
            ("fe80::1%a\u{7}", "is not a zone"),
            ("host%eth0", "expected an address"),
            ("", "expected an address"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }

    #[test]
    fn a_zone_is_of_the_host_that_names_it() {
        let own = parse("fe80::1%eth0").unwrap();
        assert!(own.is_link_local() && !own.lacks_zone() && own.elsewhere().lacks_zone());
        assert_eq!((own.elsewhere().to_string().as_str(), own.zone()), ("fe80::1", Some("eth0")));
        assert_eq!(ScopedAddr::new("2001:db8::1".parse().unwrap(), Some("eth0")).zone(), None);
        // As the kernel has them.
        for (text, expected) in [
            ("[fe80::1%7]:80", "fe80::1%7"),
            ("[fe80::1]:80", "fe80::1"),
            ("[2001:db8::1%7]:80", "2001:db8::1"),
            ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
        ] {
            let socket: SocketAddr = text.parse().unwrap();
            assert_eq!(ScopedAddr::from(socket).to_string(), expected);
        }
    }
}
