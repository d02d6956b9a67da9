//! What is looked at: a name with an address of each family, or a pair of addresses.

use crate::failure::Failure;
use crate::path::dns;
use stacklab_model::{Family, ScopedAddr};
use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

/// A dual-stack host and what is asked of it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// As the user wrote it, or the pair's name.
    pub name: String,
    /// The host's name in requests and certificates.
    pub host: String,
    /// Whether requests are inside TLS.
    pub tls: bool,
    /// TCP port.
    pub port: u16,
    /// What is asked for.
    pub path: String,
    /// An address of each family, or why there is none.
    pub addresses: BTreeMap<Family, Result<ScopedAddr, String>>,
}

impl Target {
    /// The address of a family.
    pub(crate) fn address(&self, family: Family) -> Result<&ScopedAddr, String> {
        self.addresses[&family].as_ref().map_err(Clone::clone)
    }
}

/// A place without its addresses: `NAME`, `http://NAME:PORT/PATH` and so on.
struct Place {
    host: String,
    tls: bool,
    port: u16,
    path: String,
}

fn place(text: &str) -> Result<Place, Failure> {
    let wrong = |what: &str| Failure::Usage(format!("`{text}` is no place to look at: {what}"));
    let (tls, rest) = match text.split_once("://") {
        Some(("http", rest)) => (false, rest),
        Some(("https", rest)) => (true, rest),
        Some(_) => return Err(wrong("http:// and https:// are known")),
        None => (true, text),
    };
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong("its port is no number"))?)),
        None => (authority, None),
    };
    let is_name = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if host.is_empty() || host.len() > 253 || !is_name(host) || host.parse::<IpAddr>().is_ok() {
        return Err(wrong("a name is wanted; --pairs has pairs of addresses"));
    }
    if path.chars().any(|c| c.is_control() || c == ' ') || !path.is_ascii() {
        return Err(wrong("its path has characters that a request cannot have"));
    }
    let port = port.unwrap_or(if tls { 443 } else { 80 });
    Ok(Place { host: host.to_owned(), tls, port, path: path.to_owned() })
}

/// Looks up a name: by these resolvers, or as the system does.
///
/// # Errors
/// `Usage` if it is no name, `Unreachable` if it has no address.
pub(crate) fn named(text: &str, resolvers: &[IpAddr]) -> Result<Target, Failure> {
    let place = place(text)?;
    let found = match resolvers {
        [] => by_system(&place.host),
        resolvers => by_resolvers(&place.host, resolvers),
    };
    let found = found.map_err(|reason| {
        Failure::Unreachable(format!("could not look up `{}`: {reason}; check its name", place.host))
    })?;
    let addresses: BTreeMap<_, _> = Family::ALL
        .iter()
        .map(|family| {
            let record = if *family == Family::Ipv4 { "A" } else { "AAAA" };
            let address = found.iter().find(|address| Family::of(**address) == *family);
            let missing = || format!("the name has no {family} address (no {record} record)");
            (*family, address.map(|address| ScopedAddr::from(*address)).ok_or_else(missing))
        })
        .collect();
    if addresses.values().all(Result::is_err) {
        return Err(Failure::Unreachable(format!("`{}` has no address; check its name", place.host)));
    }
    let Place { host, tls, port, path } = place;
    Ok(Target { name: text.to_owned(), host, tls, port, path, addresses })
}

fn by_system(host: &str) -> Result<Vec<IpAddr>, String> {
    let found = (host, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

fn by_resolvers(host: &str, resolvers: &[IpAddr]) -> Result<Vec<IpAddr>, String> {
    let mut failed = Vec::new();
    for resolver in resolvers {
        let found = Family::ALL.iter().map(|family| dns::look_up(*resolver, host, *family)).collect();
        match found {
            Ok::<Vec<dns::Found>, _>(found) => {
                return Ok(found.into_iter().flat_map(|found| found.addresses).collect());
            }
            Err(reason) => failed.push(format!("{resolver}: {reason}")),
        }
    }
    Err(failed.join("; "))
}

/// Reads a file of pairs: an IPv4 and an IPv6 address on each line, then what [`named`] takes if requests are to be
/// made. Empty lines and those that begin with `#` are left out.
///
/// # Errors
/// With the line that is none.
pub(crate) fn pairs(text: &str, file: &str) -> Result<Vec<Target>, Failure> {
    let lines = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    let wanted = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let targets: Vec<Target> = wanted
        .map(|(number, line)| {
            pair(line).map_err(|reason| Failure::Usage(format!("{file}, line {number}: {reason}")))
        })
        .collect::<Result<_, _>>()?;
    if targets.is_empty() { Err(Failure::Usage(format!("{file} has no pairs"))) } else { Ok(targets) }
}

fn pair(line: &str) -> Result<Target, String> {
    let mut words = line.split_whitespace();
    let mut addresses = BTreeMap::new();
    for family in Family::ALL {
        let word = words.next().unwrap_or_default();
        let address: ScopedAddr = word.parse().map_err(|_| format!("`{word}` is no {family} address"))?;
        if Family::of(address.ip()) != *family {
            return Err(format!("{address} is no {family} address: the IPv4 one comes first"));
        }
        addresses.insert(*family, Ok(address));
    }
    let named = words.next();
    let place = place(named.unwrap_or("https://pair.invalid")).map_err(|error| error.to_string())?;
    let Place { host, tls, port, path } = place;
    let name = named.unwrap_or(line).to_owned();
    Ok(Target { name, host, tls, port, path, addresses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_defaults_and_is_checked() {
        let read = |text: &str| place(text).map(|p| (p.host, p.tls, p.port, p.path)).ok();
        let is = |host: &str, tls, port, path: &str| Some((host.to_owned(), tls, port, path.to_owned()));
        assert_eq!(read("example.org"), is("example.org", true, 443, "/"));
        assert_eq!(read("http://example.org"), is("example.org", false, 80, "/"));
        assert_eq!(read("https://a.example:8443/big?x=1"), is("a.example", true, 8443, "/big?x=1"));
        for wrong in
            ["", "ftp://a", "192.0.2.1", "[2001:db8::1]", "a b", "http://a:x/", "http://a/\r\nX: y", "-a;b"]
        {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pairs_are_read_and_the_wrong_line_is_named() {
        let read = pairs("# ours\n\n192.0.2.1 2001:db8::1\n192.0.2.2 2001:db8::2 http://b.example/x\n", "f")
            .unwrap();
        assert_eq!((read.len(), read[1].host.as_str(), read[1].port), (2, "b.example", 80));
        assert_eq!(read[0].address(Family::Ipv6).unwrap().to_string(), "2001:db8::1");
        for (text, said) in [
            ("192.0.2.1 2001:db8::1\n192.0.2.1", "line 2: `` is no ipv6"),
            ("2001:db8::1 192.0.2.1", "line 1: 2001:db8::1 is no ipv4 address"),
            ("#", "no pairs"),
        ] {
            let error = pairs(text, "f").unwrap_err().to_string();
            assert!(error.to_lowercase().contains(said), "{error}");
        }
    }
}
