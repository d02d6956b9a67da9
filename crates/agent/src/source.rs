//! The addresses of this host to measure from (`--from`): one, or one of each family.

use stacklab_model::{Family, ScopedAddr};
use stacklab_traffic::host::zone::written_here;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// At least one address of this host, at most one of each family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAddresses(BTreeMap<Family, ScopedAddr>);

impl SourceAddresses {
    /// The address of this family.
    pub fn of(&self, family: Family) -> Option<&ScopedAddr> {
        self.0.get(&family)
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &ScopedAddr> {
        self.0.values()
    }
}

impl FromStr for SourceAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut addresses: BTreeMap<Family, ScopedAddr> = BTreeMap::new();
        let written: Vec<&str> = text.split(',').map(str::trim).collect();
        for (place, one) in (1..).zip(&written) {
            let at = if written.len() == 1 { String::new() } else { format!("address {place}: ") };
            if one.is_empty() {
                return Err(format!("{at}it is empty: write ADDRESS, or IPV4,IPV6"));
            }
            let address = written_here(one).map_err(|reason| format!("{at}{reason}"))?;
            let family = Family::of(address.ip());
            if let Some(before) = addresses.get(&family) {
                return Err(format!(
                    "{at}{address} is of the family of {before}: name one address of each family"
                ));
            }
            addresses.insert(family, address);
        }
        Ok(SourceAddresses(addresses))
    }
}

impl fmt::Display for SourceAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.all().map(ScopedAddr::to_string).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_of_each_family_is_read_in_either_order() {
        for text in ["127.0.0.1,::1", "::1,127.0.0.1", "::1, 127.0.0.1"] {
            let both: SourceAddresses = text.parse().unwrap();
            assert_eq!(both.to_string(), "127.0.0.1,::1", "{text}");
            assert_eq!(both.of(Family::Ipv6).unwrap().to_string(), "::1", "{text}");
        }
        let one: SourceAddresses = "::1".parse().unwrap();
        assert_eq!((one.of(Family::Ipv4), one.all().count()), (None, 1));
    }

    #[test]
    fn a_wrong_address_is_named_with_its_place() {
        for (text, said) in [
            ("127.0.0.1,here", "address 2: here: "),
            ("here,127.0.0.1", "address 1: here: "),
            ("127.0.0.1,", "address 2: it is empty"),
            ("127.0.0.1,127.0.0.2", "address 2: 127.0.0.2 is of the family of 127.0.0.1"),
            ("127.0.0.1,::1,::2", "address 3: ::2 is of the family of ::1"),
            ("::1,fe80::1", "address 2: fe80::1: a link-local address needs its zone"),
            ("", "it is empty"),
        ] {
            let error = text.parse::<SourceAddresses>().unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
