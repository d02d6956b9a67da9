//! The programs of a trial: generators, which drive its traffic, and services, which run on the receiver.

use crate::Factor::{self, CongestionControl, Dscp, Flows, Mss, Nodelay, ReceiveBuffer, SendBuffer};
use crate::Probe::{self, Echo, Paced, Stream};
use crate::UnknownName;
use crate::names::named;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A program that drives the traffic of a trial. Its command lines and output are in `crates/protocols`.
#[derive(Debug)]
pub struct GeneratorDef {
    /// What the generator is, in a sentence without its period. The study language's description includes it.
    pub doc: &'static str,
    /// Its programs: the sender's end, the receiver's end, and others that it needs. None: stacklab's own.
    pub programs: &'static [&'static str],
    pub remedy: &'static str,
    pub probes: &'static [Probe],
    /// Nanoseconds that its time must be a multiple of; 0: any time.
    pub step_ns: u64,
    pub counts_messages: bool,
    /// The factors of a cell's own sockets and flows that its command line has. Those of hosts and links hold for all.
    pub settings: &'static [Factor],
}

named! {
    pub enum Generator("generator") {
        Stacklab = "stacklab",
        Iperf3 = "iperf3",
        Iperf = "iperf",
        Netperf = "netperf",
        Ditg = "ditg",
    }
}

/// In the order of [`Generator::ALL`].
static DEFINITIONS: [GeneratorDef; Generator::ALL.len()] = [
    GeneratorDef {
        doc: "stacklab's own, the default",
        programs: &[],
        remedy: "",
        probes: Probe::ALL,
        step_ns: 0,
        counts_messages: true,
        settings: Factor::ALL,
    },
    GeneratorDef {
        doc: "iperf3, whole seconds",
        programs: &["iperf3", "iperf3"],
        remedy: "sudo apt-get install iperf3",
        probes: &[Stream, Paced],
        step_ns: 1_000_000_000,
        counts_messages: true,
        settings: &[Flows, Mss, Nodelay, CongestionControl, Dscp],
    },
    GeneratorDef {
        doc: "iperf 2",
        programs: &["iperf", "iperf"],
        remedy: "sudo apt-get install iperf",
        probes: &[Stream, Paced],
        step_ns: 10_000_000,
        counts_messages: true,
        settings: &[SendBuffer, ReceiveBuffer, Mss, Nodelay, CongestionControl, Dscp],
    },
    GeneratorDef {
        doc: "netperf, whole seconds, floods and round trips",
        programs: &["netperf", "netserver"],
        remedy: "build it from its source (https://github.com/HewlettPackard/netperf), or take Debian's package from non-free",
        probes: &[Stream, Echo],
        step_ns: 1_000_000_000,
        counts_messages: false,
        settings: &[SendBuffer, ReceiveBuffer, Nodelay],
    },
    GeneratorDef {
        doc: "D-ITG",
        programs: &["ITGSend", "ITGRecv", "ITGDec"],
        remedy: "sudo apt-get install d-itg",
        probes: &[Stream, Paced],
        step_ns: 1_000_000,
        counts_messages: true,
        settings: &[Dscp],
    },
];

impl Generator {
    pub fn definition(self) -> &'static GeneratorDef {
        &DEFINITIONS[self as usize]
    }

    pub fn is_other(self) -> bool {
        self != Generator::Stacklab
    }
}

named! {
    /// A service that runs on the receiver and answers the sender's requests.
    pub enum Service("service") {
        Dns = "dns",
        Dhcp = "dhcp",
        Directory = "directory",
    }
}

/// The services of a cell, in the order of their definition; empty if the study does not name any.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Services(BTreeSet<Service>);

const NONE: &str = "none";

/// The valid levels, for messages.
pub const SERVICES: &str = "\"none\", or names joined by + of dns, dhcp, directory";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoServices {
    Unknown(UnknownName),
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
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, service: Service) -> bool {
        self.0.contains(&service)
    }

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
        assert!(parse("none").is_empty());
        assert_eq!(parse("none"), Services::default());
        assert_eq!(parse("directory + dns").to_string(), "dns+directory");
        assert_eq!(parse("dns+dhcp+directory").iter().count(), 3);
        assert!(parse("dhcp").contains(Service::Dhcp) && !parse("dhcp").contains(Service::Dns));
        assert_eq!(parse("none").to_string(), "none");
    }

    fn parse(text: &str) -> Services {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_no_service_is_said_with_the_nearest_one() {
        assert!(parse_error("dns+directry").contains("did you mean `directory`?"));
        assert!(parse_error("dns+none").contains("there is no service `none`"));
        assert!(parse_error("").contains("there is no service ``"));
        assert_eq!(parse_error("dns+dhcp+dns"), "the service `dns` is named twice");
    }

    fn parse_error(text: &str) -> String {
        text.parse::<Services>().unwrap_err().to_string()
    }
}
