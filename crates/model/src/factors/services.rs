//! Services that run on the receiver. The levels of the factor `services` name them.

use crate::names::UnknownName;
use crate::names::named;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

named! {
    /// A service that runs on the receiver and answers the sender's requests.
    pub enum Service("service") {
        /// DNS.
        Dns = "dns",
        /// DHCP.
        Dhcp = "dhcp",
        /// LDAP.
        Directory = "directory",
    }
}

/// The services of a cell, in the order of their definition; empty if the study does not name any.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Services(BTreeSet<Service>);

/// The level without services.
const NONE: &str = "none";

/// The valid levels, for messages.
pub const SERVICES: &str = "\"none\", or names joined by + of dns, dhcp, directory";

/// Text that is not a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoServices {
    /// A name that is not a service.
    Unknown(UnknownName),
    /// A service is named twice.
    Twice(Service),
}

impl fmt::Display for NoServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoServices::Unknown(unknown) => unknown.fmt(f),
            NoServices::Twice(service) => write!(f, "the service `{service}` is named twice"),
        }
    }
}

impl std::error::Error for NoServices {}

impl Services {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains a service.
    pub fn contains(&self, service: Service) -> bool {
        self.0.contains(&service)
    }

    /// Every service in the set.
    pub fn iter(&self) -> impl Iterator<Item = Service> {
        self.0.iter().copied()
    }
}

impl fmt::Display for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        let names: Vec<&str> = self.iter().map(Service::name).collect();
        f.write_str(&names.join("+"))
    }
}

impl FromStr for Services {
    type Err = NoServices;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut services = Services::default();
        if text.trim() == NONE {
            return Ok(services);
        }
        for name in text.split('+') {
            let service = name.trim().parse().map_err(NoServices::Unknown)?;
            if !services.0.insert(service) {
                return Err(NoServices::Twice(service));
            }
        }
        Ok(services)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_a_set_that_prints_in_one_order() {
        let of = |text: &str| text.parse::<Services>().unwrap();
        assert!(of("none").is_empty());
        assert_eq!(of("none"), Services::default());
        assert_eq!(of("directory + dns").to_string(), "dns+directory");
        assert_eq!(of("dns+dhcp+directory").iter().count(), 3);
        assert!(of("dhcp").contains(Service::Dhcp) && !of("dhcp").contains(Service::Dns));
        assert_eq!(of("none").to_string(), "none");
    }

    #[test]
    fn what_is_no_service_is_said_with_the_nearest_one() {
        let said = |text: &str| text.parse::<Services>().unwrap_err().to_string();
        assert!(said("dns+directry").contains("did you mean `directory`?"));
        assert!(said("dns+none").contains("there is no service `none`"));
        assert!(said("").contains("there is no service ``"));
        assert_eq!(said("dns+dhcp+dns"), "the service `dns` is named twice");
    }
}
