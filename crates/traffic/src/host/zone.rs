//! Addresses of this host: zones of link-local ones (RFC 4007), which only here become the index that the kernel takes;
//! the route to another host; and where a program listens, as its user writes it.

use crate::engine::own_socket;
use crate::sys::{self, Socket};
use crate::{Attempt, EngineError};
use socket2::{Domain, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::{fmt, io};

pub use stacklab_model::ScopedAddr;

/// Maximum number of interfaces that an error names.
const NAMED: usize = 16;

/// The address as this host's kernel takes it.
///
/// # Errors
/// `InvalidInput` if it is link-local and has no zone, `NotFound` if this host does not have its zone.
pub fn socket_addr(address: &ScopedAddr, port: u16) -> io::Result<SocketAddr> {
    let IpAddr::V6(ip) = address.ip() else { return Ok(SocketAddr::new(address.ip(), port)) };
    let index = match address.zone() {
        Some(zone) => index(zone)?,
        None if address.lacks_zone() => return Err(no_zone(address)),
        None => 0,
    };
    Ok(SocketAddrV6::new(ip, port, 0, index).into())
}

/// Both ends of a path as this host's kernel takes them: its own one, with port 0, and the other one. If that is
/// link-local, it is in the zone of the own one: the scope id of `to` is not needed.
///
/// # Errors
/// As [`socket_addr`]; `InvalidInput` if the ends are not in one zone.
pub fn ends(from: &ScopedAddr, to: SocketAddr) -> io::Result<(SocketAddr, SocketAddr)> {
    let own = socket_addr(from, 0)?;
    let (SocketAddr::V6(own_v6), SocketAddr::V6(mut other)) = (own, to) else { return Ok((own, to)) };
    if !other.ip().is_unicast_link_local() {
        return Ok((own, to));
    }
    let zone = own_v6.scope_id();
    let said = other.scope_id();
    if zone == 0 || ![0, zone].contains(&said) {
        let text = "link-local addresses reach each other in one zone only";
        let text = format!("{text}: {from} is not in that of {}", ScopedAddr::from(to));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    other.set_scope_id(zone);
    Ok((own, other.into()))
}

/// Reads an address that a user of this host has written, and checks that this host has its zone.
///
/// # Errors
/// What is wrong with it, in a sentence.
pub fn written_here(text: &str) -> Result<ScopedAddr, String> {
    let said = |reason: String| format!("{text}: {reason}");
    let address: ScopedAddr = text.parse().map_err(said)?;
    socket_addr(&address, 0).map_err(|error| said(error.to_string()))?;
    Ok(address)
}

/// The index of an interface, from its name or from an index. A number is an index: this is how kernels say zones.
fn index(zone: &str) -> io::Result<u32> {
    let interfaces = sys::interface_indices()?;
    let number = zone.parse::<u32>();
    for (index, name) in &interfaces {
        let is_it = match number {
            Ok(number) => *index == number,
            Err(_) => name == zone,
        };
        if is_it {
            return Ok(*index);
        }
    }
    let text = format!("this host has no interface {zone}; it has {}", names(&interfaces));
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}

fn no_zone(address: &ScopedAddr) -> io::Error {
    let interfaces = sys::interface_indices().unwrap_or_default();
    let text = format!(
        "a link-local address needs its zone, which is an interface of this host: write {address}%INTERFACE; this host has {}",
        names(&interfaces)
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn names(interfaces: &[(u32, String)]) -> String {
    let named: Vec<&str> = interfaces.iter().take(NAMED).map(|(_, name)| name.as_str()).collect();
    let more = interfaces.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// The local end of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Own address. If it is link-local, with the zone as the other end's was given.
    pub address: ScopedAddr,
    /// The interface that holds it.
    pub interface: String,
    /// MTU of that interface, bytes.
    pub mtu: u32,
}

/// The kernel's route to an address, from the address `from` if given. Nothing is sent.
pub fn route_to(to: &ScopedAddr, from: Option<&ScopedAddr>) -> Result<Route, EngineError> {
    let (socket, own) = connect(to, from).attempt(|| match from {
        Some(from) => format!("find a route from {from} to {to}"),
        None => format!("find a way to {to}"),
    })?;
    let interface = own_socket::interface_of(own)?;
    let mtu = sys::interface_mtu(&socket, &interface).attempt(|| format!("read the MTU of {interface}"))?;
    let address = match to.zone() {
        Some(zone) => ScopedAddr::new(own.ip(), Some(zone)),
        None => own.into(),
    };
    Ok(Route { address, interface, mtu })
}

/// A socket that is connected to an address, and its own one.
fn connect(to: &ScopedAddr, from: Option<&ScopedAddr>) -> io::Result<(Socket, SocketAddr)> {
    /// A placeholder: a datagram socket is connected to it.
    const NO_SERVICE: u16 = 9;
    let mut there = socket_addr(to, NO_SERVICE)?;
    let socket = Socket::new(Domain::for_address(there), Type::DGRAM, None)?;
    if let Some(from) = from {
        let own;
        (own, there) = ends(from, there)?;
        socket.bind(&own.into())?;
    }
    socket.connect(&there.into())?;
    let own = own_socket::local_addr(&socket)?;
    Ok((socket, own))
}

/// Where to listen, as written: nothing, `ADDRESS`, `:PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// `None` is any address of either family.
    address: Option<ScopedAddr>,
    /// `None` is the default of what listens.
    port: Option<u16>,
}

impl ListenAddress {
    /// The address; `None` is any address of either family.
    pub fn address(&self) -> Option<&ScopedAddr> {
        self.address.as_ref()
    }

    /// The port, or this one where none is written.
    pub fn port_or(&self, default: u16) -> u16 {
        self.port.unwrap_or(default)
    }

    /// The same, with this port where none is written.
    pub fn with_default(self, port: u16) -> Self {
        ListenAddress { port: Some(self.port_or(port)), ..self }
    }

    /// The addresses of sockets that have one family each, with this port where none is written.
    pub fn of_each_family(&self, default: u16) -> io::Result<Vec<SocketAddr>> {
        let port = self.port_or(default);
        match &self.address {
            Some(address) => Ok(vec![socket_addr(address, port)?]),
            None => Ok(vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let any = ListenAddress { address: None, port: None };
        if text.is_empty() {
            return Ok(any);
        }
        if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
            return Ok(ListenAddress { port: Some(port), ..any });
        }
        let (address, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').unwrap_or((text, "")),
            // An address of IPv6 has more than one colon, and then no port.
            None if text.matches(':').count() == 1 => text.split_at(text.find(':').unwrap_or(text.len())),
            None => (text, ""),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().map(Some),
            None => port.is_empty().then_some(None),
        };
        match port {
            Some(port) if address.contains('%') || address.parse::<ScopedAddr>().is_ok() => {
                Ok(ListenAddress { address: Some(written_here(address)?), port })
            }
            _ => Err("expected an address, :PORT, ADDRESS:PORT or [IPV6]:PORT".to_owned()),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, self.port) {
            (Some(address), Some(port)) => f.write_str(&address.with_port(port)),
            (Some(address), None) => address.fmt(f),
            (None, Some(port)) => write!(f, "port {port} of any address"),
            (None, None) => f.write_str("any address"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Family;

    fn parse_scoped_address(text: &str) -> ScopedAddr {
        text.parse().unwrap()
    }

    #[test]
    fn zone_is_an_interface_of_this_host_by_name_or_index() {
        let (index, name) = sys::interface_indices().unwrap().remove(0);
        for zone in [name.clone(), index.to_string()] {
            let text = format!("fe80::1%{zone}");
            let SocketAddr::V6(found) = socket_addr(&written_here(&text).unwrap(), 80).unwrap() else {
                panic!("{text}")
            };
            assert_eq!((found.scope_id(), found.port()), (index, 80));
        }
        assert_eq!(
            socket_addr(&parse_scoped_address("2001:db8::1"), 80).unwrap(),
            "[2001:db8::1]:80".parse().unwrap()
        );
        assert_eq!(
            socket_addr(&parse_scoped_address("192.0.2.1"), 80).unwrap(),
            "192.0.2.1:80".parse().unwrap()
        );
        for unknown in ["no-such", "4294967295"] {
            let refused = written_here(&format!("fe80::1%{unknown}")).unwrap_err();
            let said = format!("fe80::1%{unknown}: this host has no interface {unknown}; it has {name}");
            assert!(refused.starts_with(&said), "{refused}");
        }
        let refused = written_here("fe80::1").unwrap_err();
        assert!(refused.contains("write fe80::1%INTERFACE") && refused.contains(&name), "{refused}");
    }

    #[test]
    fn both_ends_of_a_path_are_in_one_zone() {
        let (index, name) = sys::interface_indices().unwrap().remove(0);
        let own = parse_scoped_address(&format!("fe80::1%{name}"));
        let other = SocketAddrV6::new("fe80::2".parse().unwrap(), 80, 0, index);
        for said in [0, index] {
            let mut to = other;
            to.set_scope_id(said);
            assert_eq!(ends(&own, to.into()).unwrap().1, other.into());
        }
        let mut elsewhere = other;
        elsewhere.set_scope_id(index + 1);
        assert!(ends(&own, elsewhere.into()).is_err());
        let global = ends(&parse_scoped_address("2001:db8::1"), other.into()).unwrap_err().to_string();
        assert!(global.contains("2001:db8::1 is not in that of fe80::2"), "{global}");
        let plain = ends(&parse_scoped_address("192.0.2.1"), "192.0.2.2:80".parse().unwrap()).unwrap();
        assert_eq!(plain, ("192.0.2.1:0".parse().unwrap(), "192.0.2.2:80".parse().unwrap()));
    }

    #[test]
    fn loopback_has_all_addresses_of_its_network() {
        let own = parse_scoped_address("127.0.0.1");
        let other = parse_scoped_address("127.1.2.3");
        let route = route_to(&own, Some(&other)).unwrap();
        assert_eq!((route.address, &route.interface), (other, &route_to(&own, None).unwrap().interface));
        let nowhere = own_socket::interface_of("192.0.2.7:0".parse().unwrap()).unwrap_err().to_string();
        assert!(nowhere.contains("no interface has it"), "{nowhere}");
    }

    #[test]
    fn loopback_is_seen_from_itself() {
        for family in Family::ALL {
            let own = ScopedAddr::from(family.loopback());
            let route = route_to(&own, None).unwrap();
            assert_eq!(route.address, own);
            assert!(route.mtu >= 1280, "{route:?}");
            assert_eq!(route_to(&own, Some(&own)).unwrap(), route);
        }
    }

    #[test]
    fn address_of_another_host_is_no_place_to_see_from() {
        let [there, other] = ["127.0.0.1", "192.0.2.77"].map(|text| text.parse().unwrap());
        let error = route_to(&there, Some(&other)).unwrap_err();
        assert!(error.to_string().contains("from 192.0.2.77 to 127.0.0.1"), "{error}");
    }

    const PORT: u16 = 5202;

    fn read_place(text: &str) -> Result<(Option<ScopedAddr>, u16), String> {
        let place: ListenAddress = text.parse()?;
        Ok((place.address().cloned(), place.port_or(PORT)))
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let [v4, v6] = ["127.0.0.1", "::1"].map(|text| Some(text.parse::<ScopedAddr>().unwrap()));
        assert_eq!(read_place(""), Ok((None, PORT)));
        assert_eq!(read_place(":7000"), Ok((None, 7000)));
        assert_eq!(read_place("127.0.0.1"), Ok((v4.clone(), PORT)));
        assert_eq!(read_place("127.0.0.1:7000"), Ok((v4, 7000)));
        assert_eq!(read_place("::1"), Ok((v6.clone(), PORT)));
        assert_eq!(read_place("[::1]"), Ok((v6.clone(), PORT)));
        assert_eq!(read_place("[::1]:7000"), Ok((v6, 7000)));
        for wrong in [
            "7000",
            "here",
            ":70000",
            "::1:",
            "127.0.0.1:",
            ":",
            "[::1",
            "[::1]7000",
            "[::1]:",
            "[127.0.0.1]:x",
            "::1]",
            "here:7000",
        ] {
            assert!(read_place(wrong).is_err(), "{wrong}");
        }
    }

    // Everywhere on Linux, interface 1 is loopback.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_local_place_has_a_zone_of_this_host() {
        for (text, port) in [("fe80::1%1", PORT), ("[fe80::1%1]", PORT), ("[fe80::1%1]:7000", 7000)] {
            let place = text.parse::<ListenAddress>().unwrap().with_default(PORT);
            assert_eq!(place.to_string(), format!("[fe80::1%1]:{port}"));
        }
        for (text, word) in [
            ("fe80::1", "%INTERFACE"),
            ("[fe80::1]:7000", "%INTERFACE"),
            ("[fe80::1%no-such]:7000", "no interface no-such; it has "),
            ("fe80::1%lo:7000", "is not a zone"),
            ("2001:db8::1%1", "leave out `%1`"),
            ("127.0.0.1%1:7000", "leave out `%1`"),
        ] {
            let refused = text.parse::<ListenAddress>().unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }
}
