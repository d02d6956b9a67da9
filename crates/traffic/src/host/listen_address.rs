//! Where a program of this host listens, as its user writes it.

use crate::host::zone::{self, ScopedAddr};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::{fmt, io};

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
            Some(address) => Ok(vec![zone::socket_addr(address, port)?]),
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
                Ok(ListenAddress { address: Some(zone::written_here(address)?), port })
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

    const PORT: u16 = 5202;

    #[test]
    fn places_are_read_as_they_are_written() {
        let place = |text: &str| {
            text.parse::<ListenAddress>().map(|place| (place.address().cloned(), place.port_or(PORT)))
        };
        let [v4, v6] = ["127.0.0.1", "::1"].map(|text| Some(text.parse::<ScopedAddr>().unwrap()));
        assert_eq!(place(""), Ok((None, PORT)));
        assert_eq!(place(":7000"), Ok((None, 7000)));
        assert_eq!(place("127.0.0.1"), Ok((v4.clone(), PORT)));
        assert_eq!(place("127.0.0.1:7000"), Ok((v4, 7000)));
        assert_eq!(place("::1"), Ok((v6.clone(), PORT)));
        assert_eq!(place("[::1]"), Ok((v6.clone(), PORT)));
        assert_eq!(place("[::1]:7000"), Ok((v6, 7000)));
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
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    // Everywhere on Linux, interface 1 is loopback.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_local_place_has_a_zone_of_this_host() {
        let place = |text: &str| text.parse::<ListenAddress>();
        for (text, port) in [("fe80::1%1", PORT), ("[fe80::1%1]", PORT), ("[fe80::1%1]:7000", 7000)] {
            let place = place(text).unwrap().with_default(PORT);
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
            let refused = place(text).unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }
}
