//! What is looked at: a name with an address of each family, or a pair of addresses.

use crate::PathError;
use crate::probe::dns;
use crate::url::{Url, read_url};
use stacklab_model::{Family, ScopedAddr};
use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

/// A dual-stack host and what is asked of it.
#[derive(Debug, Clone)]
pub struct Target {
    /// As the user wrote it, or the pair's name.
    pub(crate) name: String,
    /// The host's name in requests and certificates.
    pub(crate) host: String,
    pub(crate) tls: bool,
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) addresses: BTreeMap<Family, Result<ScopedAddr, NoAddress>>,
    /// The name's further addresses of a family, in the resolver's order.
    pub(crate) further: BTreeMap<Family, Vec<ScopedAddr>>,
    /// Addresses that were tried before the one in `addresses`, each with the reason why it is not measured.
    pub(crate) refused: BTreeMap<Family, Vec<(ScopedAddr, String)>>,
}

/// Why a family has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAddress {
    /// The name has none of it.
    Absent(String),
    /// Nobody could say whether the name has one.
    Unresolved(String),
}

impl NoAddress {
    pub(crate) fn reason(&self) -> &str {
        match self {
            NoAddress::Absent(reason) | NoAddress::Unresolved(reason) => reason,
        }
    }
}

impl Target {
    pub(crate) fn address(&self, family: Family) -> Result<&ScopedAddr, &NoAddress> {
        self.addresses[&family].as_ref()
    }

    /// The addresses of a family that were tried before the one that is measured, with reasons.
    pub(crate) fn refusals(&self, family: Family) -> &[(ScopedAddr, String)] {
        self.refused.get(&family).map_or(&[], Vec::as_slice)
    }

    fn without_addresses(name: &str, url: Url) -> Self {
        let Url { host, tls, port, path, .. } = url;
        Target {
            name: name.to_owned(),
            host,
            tls,
            port,
            path,
            addresses: BTreeMap::new(),
            further: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }
}

/// Looks up a name: by these resolvers, or as the system does.
pub fn look_up_target(text: &str, resolvers: &[IpAddr]) -> Result<Target, PathError> {
    let mut url = read_url(text)?;
    let address = url.address.take();
    let target = Target::without_addresses(text, url);
    if let Some(address) = address {
        let named = Family::of(address.ip());
        let other = format!("an {named} address was named, which has no other family (--pairs has both)");
        let mut addresses = BTreeMap::new();
        for &family in Family::ALL {
            let own =
                if family == named { Ok(address.clone()) } else { Err(NoAddress::Absent(other.clone())) };
            addresses.insert(family, own);
        }
        return Ok(Target { addresses, ..target });
    }
    let (by_system, resolvers) = match resolvers {
        [] => (by_system(&target.host), system_resolvers()),
        _ => (Ok(Vec::new()), resolvers.to_vec()),
    };
    let mut addresses = BTreeMap::new();
    let mut further = BTreeMap::new();
    for &family in Family::ALL {
        let found = of_family(&target.host, family, &by_system, &resolvers).map(|mut all| {
            let first = all.remove(0);
            further.insert(family, all);
            first
        });
        addresses.insert(family, found);
    }
    if addresses.values().all(Result::is_err) {
        let mut reasons: Vec<&str> =
            addresses.values().filter_map(|none| Some(none.as_ref().err()?.reason())).collect();
        reasons.dedup();
        let host = &target.host;
        let reasons = reasons.join("; ");
        return Err(PathError::NoAddress(format!("`{host}` has no address: {reasons}; check its name")));
    }
    Ok(Target { addresses, further, ..target })
}

/// The resolvers of /etc/resolv.conf.
pub fn system_resolvers() -> Vec<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let words = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    words.filter_map(|address| address.trim().parse().ok()).collect()
}

/// The addresses of a family, at least one: sorted by the system (RFC 6724), or as a resolver answers. The system gives
/// the addresses of both families at once, and not why it has none of one: then its resolvers are asked.
fn of_family(
    host: &str,
    family: Family,
    by_system: &Result<Vec<IpAddr>, String>,
    resolvers: &[IpAddr],
) -> Result<Vec<ScopedAddr>, NoAddress> {
    let all = by_system.as_deref().unwrap_or_default();
    let by_system_of = pick(family, all);
    if !by_system_of.is_empty() {
        return Ok(by_system_of);
    }
    let record = if family == Family::Ipv4 { "A" } else { "AAAA" };
    let mut failed = by_system.as_ref().err().into_iter().cloned().collect::<Vec<_>>();
    for resolver in resolvers {
        match dns::insist(*resolver, host, family) {
            Ok(found) => {
                let of = pick(family, &found.addresses);
                // What the system finds otherwise, such as in /etc/hosts, is as it says.
                let is_found = all.is_empty() && !of.is_empty();
                if is_found {
                    return Ok(of);
                }
                return Err(explain_absence(&found.addresses, family, record));
            }
            Err(reason) => failed.push(reason),
        }
    }
    if failed.is_empty() {
        Err(explain_absence(all, family, record))
    } else {
        Err(NoAddress::Unresolved(format!("no answer for the {record} record: {}", failed.join("; "))))
    }
}

/// Why a name has no address of a family, by all addresses that were found.
fn explain_absence(all: &[IpAddr], family: Family, record: &str) -> NoAddress {
    let mapped = all.iter().find(|address| address.is_ipv6() && !is_of(Family::Ipv6, address));
    NoAddress::Absent(match mapped {
        Some(mapped) if family == Family::Ipv6 => {
            format!("the name's AAAA record is an IPv4 address ({mapped})")
        }
        _ => format!("the name has no {family} address (no {record} record)"),
    })
}

/// The addresses of a family, each once.
fn pick(family: Family, all: &[IpAddr]) -> Vec<ScopedAddr> {
    let mut picked: Vec<ScopedAddr> = Vec::new();
    for address in all.iter().filter(|address| is_of(family, address)) {
        let address = ScopedAddr::from(*address);
        if !picked.contains(&address) {
            picked.push(address);
        }
    }
    picked
}

/// Whether it is an address of the family. An IPv4-mapped one is an IPv4 address in an IPv6 record.
fn is_of(family: Family, address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => family == Family::Ipv4,
        IpAddr::V6(v6) => family == Family::Ipv6 && v6.to_ipv4_mapped().is_none(),
    }
}

fn by_system(host: &str) -> Result<Vec<IpAddr>, String> {
    let found = (host, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Reads a file of pairs: an IPv4 and an IPv6 address on each line, then what [`look_up_target`] takes if requests are
/// to be made. Empty lines and those that begin with `#` are left out.
pub fn pairs(text: &str, file: &str) -> Result<Vec<Target>, PathError> {
    let mut targets = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = place + 1;
        let target =
            pair(line).map_err(|reason| PathError::Unreadable(format!("{file}, line {number}: {reason}")))?;
        targets.push(target);
    }
    if targets.is_empty() { Err(PathError::Unreadable(format!("{file} has no pairs"))) } else { Ok(targets) }
}

fn pair(line: &str) -> Result<Target, String> {
    let mut words = line.split_whitespace();
    let mut addresses = BTreeMap::new();
    for family in Family::ALL {
        let word = words.next().unwrap_or_default();
        let address: ScopedAddr = word.parse().map_err(|_| format!("`{word}` is not an {family} address"))?;
        if Family::of(address.ip()) != *family {
            return Err(format!("{address} is not an {family} address: the IPv4 one comes first"));
        }
        addresses.insert(*family, Ok(address));
    }
    let named = words.next();
    let url = read_url(named.unwrap_or("https://pair.invalid")).map_err(|error| error.to_string())?;
    Ok(Target { addresses, ..Target::without_addresses(named.unwrap_or(line), url) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_address_has_no_other_family() {
        let target = look_up_target("[2001:db8::1]:81", &[]).unwrap();
        assert_eq!(target.address(Family::Ipv6).unwrap().to_string(), "2001:db8::1");
        let NoAddress::Absent(reason) = target.address(Family::Ipv4).unwrap_err() else {
            panic!("not absent")
        };
        assert!(reason.contains("an ipv6 address was named"), "{reason}");
    }

    fn find_ipv6(all: &[IpAddr]) -> Result<Vec<ScopedAddr>, NoAddress> {
        of_family("a.test", Family::Ipv6, &Ok(all.to_vec()), &[])
    }

    #[test]
    fn an_ipv4_mapped_address_is_not_an_ipv6_address() {
        let [four, mapped, six] =
            ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert_eq!(find_ipv6(&[four, mapped, six]).unwrap(), [ScopedAddr::from(six)]);
        let none = find_ipv6(&[four, mapped]).unwrap_err();
        assert!(
            matches!(&none, NoAddress::Absent(reason) if reason.contains("is an IPv4 address")),
            "{none:?}"
        );
        assert!(find_ipv6(&[four]).unwrap_err().reason().contains("no AAAA record"));
    }

    #[test]
    fn addresses_of_a_family_are_unique_in_system_order() {
        let all: [IpAddr; 4] =
            ["192.0.2.2", "2001:db8::1", "192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let found = of_family("a.test", Family::Ipv4, &Ok(all.to_vec()), &[]).unwrap();
        let found: Vec<String> = found.iter().map(ScopedAddr::to_string).collect();
        assert_eq!(found, ["192.0.2.2", "192.0.2.1"]);
    }

    #[test]
    fn pairs_are_read_and_the_wrong_line_is_named() {
        let read = pairs("# ours\n\n192.0.2.1 2001:db8::1\n192.0.2.2 2001:db8::2 http://b.example/x\n", "f")
            .unwrap();
        assert_eq!((read.len(), read[1].host.as_str(), read[1].port), (2, "b.example", 80));
        assert_eq!(read[0].address(Family::Ipv6).unwrap().to_string(), "2001:db8::1");
        for (text, said) in [
            ("192.0.2.1 2001:db8::1\n192.0.2.1", "line 2: `` is not an ipv6"),
            ("2001:db8::1 192.0.2.1", "line 1: 2001:db8::1 is not an ipv4 address"),
            ("#", "no pairs"),
        ] {
            let error = pairs(text, "f").unwrap_err().to_string();
            assert!(error.to_lowercase().contains(said), "{error}");
        }
    }
}
