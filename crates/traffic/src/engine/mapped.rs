//! IPv4 addresses at IPv6 sockets for both families: `::ffff:192.0.2.1` (RFC 4291, section 2.5.5.2). Everything else of
//! the engine has the IPv4 address, which is what packets carry.

use crate::sys::Socket;
use socket2::SockAddr;
use stacklab_model::{SocketKind, TrialSpec};
use std::net::{IpAddr, SocketAddr};

/// An address as a socket of the trial has it.
pub(crate) fn to_socket(spec: &TrialSpec, address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if spec.tuning.maps_ipv4() => {
            SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
        }
        _ => address,
    }
}

/// An address that a socket reports, as packets have it; `None` if it is not of IP.
pub(crate) fn from_socket(address: &SockAddr) -> Option<SocketAddr> {
    address.as_socket().map(unmap)
}

/// An address as packets have it.
pub(crate) fn unmap(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// What a bound socket is, by its own address.
pub(crate) fn kind_of(socket: &Socket) -> SocketKind {
    let own = socket.local_addr().ok().and_then(|address| address.as_socket_ipv6());
    match own.and_then(|own| own.ip().to_ipv4_mapped()) {
        Some(_) => SocketKind::Ipv4Mapped,
        None => SocketKind::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{Family, Transport};

    #[test]
    fn only_ipv4_is_mapped_and_comes_back() {
        let native = fixtures::spec(Family::Ipv4, Transport::Udp);
        let mut spec = native.clone();
        spec.tuning.socket = Some(SocketKind::Ipv4Mapped);
        for (spec, text, there) in [
            (&native, "192.0.2.1:7", "192.0.2.1:7"),
            (&spec, "192.0.2.1:7", "[::ffff:192.0.2.1]:7"),
            (&spec, "[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(to_socket(spec, text.parse().unwrap()).to_string(), there);
        }
        for text in ["192.0.2.1:7", "[fe80::1%3]:7", "[2001:db8::1]:7", "0.0.0.0:0", "[::]:0"] {
            let address = text.parse().unwrap();
            assert_eq!(from_socket(&to_socket(&spec, address).into()), Some(address));
        }
    }
}
