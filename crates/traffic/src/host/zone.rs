//! Zones of link-local addresses on this host (RFC 4007): only here does the name of an interface become the index that
//! the kernel takes.

use crate::sys;
pub use stacklab_model::ScopedAddr;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

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
    match (own, to) {
        (SocketAddr::V6(own), SocketAddr::V6(to)) if to.ip().is_unicast_link_local() => {
            let (zone, said) = (own.scope_id(), to.scope_id());
            if zone == 0 || ![0, zone].contains(&said) {
                let (to, text) = (
                    ScopedAddr::from(SocketAddr::V6(to)),
                    "link-local addresses reach each other in one zone only",
                );
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("{text}: {from} is not in that of {to}"),
                ));
            }
            Ok((own.into(), SocketAddrV6::new(*to.ip(), to.port(), to.flowinfo(), zone).into()))
        }
        _ => Ok((own, to)),
    }
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
    let is_it = |(index, name): &&(u32, String)| match zone.parse::<u32>() {
        Ok(number) => *index == number,
        Err(_) => name == zone,
    };
    interfaces.iter().find(is_it).map(|(index, _)| *index).ok_or_else(|| {
        let text = format!("this host has no interface {zone}; it has {}", names(&interfaces));
        io::Error::new(io::ErrorKind::NotFound, text)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scoped(text: &str) -> ScopedAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_zone_is_an_interface_of_this_host_by_name_or_index() {
        let (index, name) = sys::interface_indices().unwrap().remove(0);
        for zone in [name.clone(), index.to_string()] {
            let text = format!("fe80::1%{zone}");
            let SocketAddr::V6(found) = socket_addr(&written_here(&text).unwrap(), 80).unwrap() else {
                panic!("{text}")
            };
            assert_eq!((found.scope_id(), found.port()), (index, 80));
        }
        assert_eq!(socket_addr(&scoped("2001:db8::1"), 80).unwrap(), "[2001:db8::1]:80".parse().unwrap());
        assert_eq!(socket_addr(&scoped("192.0.2.1"), 80).unwrap(), "192.0.2.1:80".parse().unwrap());
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
        let own = scoped(&format!("fe80::1%{name}"));
        let with = |scope| SocketAddr::from(SocketAddrV6::new("fe80::2".parse().unwrap(), 80, 0, scope));
        for said in [0, index] {
            assert_eq!(ends(&own, with(said)).unwrap().1, with(index));
        }
        assert!(ends(&own, with(index + 1)).is_err());
        let global = ends(&scoped("2001:db8::1"), with(index)).unwrap_err().to_string();
        assert!(global.contains("2001:db8::1 is not in that of fe80::2"), "{global}");
        let plain = ends(&scoped("192.0.2.1"), "192.0.2.2:80".parse().unwrap()).unwrap();
        assert_eq!(plain, ("192.0.2.1:0".parse().unwrap(), "192.0.2.2:80".parse().unwrap()));
    }
}
