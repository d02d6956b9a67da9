//! The scenarios: what the path and the resolver do to each family.

use crate::network::answer::Unreachable;
use crate::network::wire::{PathFault, Paths};
use crate::network::zone::{QueryOutcome, Records};
use crate::network::{DEAD_IPV4, DEAD_IPV6, SERVER_IPV4, SERVER_IPV6, TRANSLATED};
use stacklab_model::Family;
use std::net::IpAddr;
use std::time::Duration;

/// How late an answer of the resolver is.
pub(crate) const LATE: Duration = Duration::from_secs(1);
/// The largest packet that the black hole passes: the minimum MTU of IPv6 (RFC 8200).
const BLACK_HOLE: usize = 1280;

/// Which scenarios are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScenarioSet {
    /// Those that show how a client decides.
    Quick,
    /// All.
    All,
}

/// A network that a client meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scenario {
    /// For files and options.
    pub name: String,
    /// For tables.
    pub label: String,
    pub paths: Paths,
    pub a: Records,
    pub aaaa: Records,
    is_quick: bool,
}

/// The name of the scenario in which nothing is wrong.
pub(crate) const BOTH: &str = "both";

/// The name of a scenario of one family's path: `ipv6-drop`.
pub(crate) fn path_scenario(family: Family, what: &str) -> String {
    format!("{}-{what}", family_key(family))
}

/// The name of a scenario of one type of record: `aaaa-late`.
pub(crate) fn record_scenario(family: Family, what: &str) -> String {
    format!("{}-{what}", record_type(family).to_lowercase())
}

fn family_key(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ipv4",
        Family::Ipv6 => "ipv6",
    }
}

/// The family's name in tables.
pub(crate) fn family_label(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

/// The type of the record with an address of a family.
pub(crate) fn record_type(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "A",
        Family::Ipv6 => "AAAA",
    }
}

fn records(addresses: Vec<IpAddr>) -> Records {
    Records { addresses, ..Records::default() }
}

impl Scenario {
    fn new(name: &str, label: &str) -> Self {
        Scenario {
            name: name.to_owned(),
            label: label.to_owned(),
            paths: Paths::default(),
            a: records(vec![SERVER_IPV4.into()]),
            aaaa: records(vec![SERVER_IPV6.into()]),
            is_quick: false,
        }
    }

    fn quick(mut self) -> Self {
        self.is_quick = true;
        self
    }

    fn with_fault(mut self, family: Family, fault: PathFault) -> Self {
        self.paths.of_mut(family).fault = Some(fault);
        self
    }

    /// Makes a round trip of a family this much longer.
    fn with_delay(mut self, family: Family, round_trip: Duration) -> Self {
        self.paths.of_mut(family).delay = round_trip / 2;
        self
    }

    fn with_records(mut self, family: Family, records: Records) -> Self {
        *self.records_mut(family) = records;
        self
    }

    fn records_mut(&mut self, family: Family) -> &mut Records {
        match family {
            Family::Ipv4 => &mut self.a,
            Family::Ipv6 => &mut self.aaaa,
        }
    }
}

/// The scenarios of a set, in the order of tables.
pub(crate) fn list(set: ScenarioSet) -> Vec<Scenario> {
    let mut all = vec![Scenario::new(BOTH, "both families work").quick()];
    for family in [Family::Ipv6, Family::Ipv4] {
        all.extend(list_paths(family));
    }
    for family in [Family::Ipv6, Family::Ipv4] {
        all.extend(list_records(family));
    }
    for (family, other) in [(Family::Ipv4, Family::Ipv6), (Family::Ipv6, Family::Ipv4)] {
        let name = format!("only-{}", record_type(family).to_lowercase());
        let label = format!("only an {} record", record_type(family));
        all.push(Scenario::new(&name, &label).with_records(other, Records::default()).quick());
    }
    for (family, dead, alive) in [
        (Family::Ipv6, IpAddr::V6(DEAD_IPV6), IpAddr::V6(SERVER_IPV6)),
        (Family::Ipv4, DEAD_IPV4.into(), SERVER_IPV4.into()),
    ] {
        let label = format!("the first of two {} addresses is dead", family_label(family));
        let scenario = Scenario::new(&path_scenario(family, "first-dead"), &label);
        all.push(scenario.with_records(family, records(vec![dead, alive])));
    }
    let nat64 = Scenario::new("nat64", "IPv6 only, NAT64 with DNS64")
        .with_records(Family::Ipv6, records(vec![TRANSLATED.into()]))
        .with_fault(Family::Ipv4, PathFault::Unreachable(Unreachable::NoRoute));
    all.push(nat64);
    all.retain(|scenario| set == ScenarioSet::All || scenario.is_quick);
    all
}

fn list_paths(family: Family) -> Vec<Scenario> {
    let milliseconds = Duration::from_millis;
    vec![
        on_path(family, "drop", "is dropped").with_fault(family, PathFault::Drop).quick(),
        on_path(family, "reset", "is refused (RST)").with_fault(family, PathFault::Reset).quick(),
        on_path(family, "unreachable", "is unreachable (ICMP, no route)")
            .with_fault(family, PathFault::Unreachable(Unreachable::NoRoute))
            .quick(),
        on_path(family, "prohibited", "is prohibited (ICMP, administratively)")
            .with_fault(family, PathFault::Unreachable(Unreachable::Prohibited)),
        on_path(family, "slow-100", "is 100 ms slower").with_delay(family, milliseconds(100)),
        on_path(family, "slow-300", "is 300 ms slower").with_delay(family, milliseconds(300)),
        on_path(family, "black-hole", "loses packets above 1280 B")
            .with_fault(family, PathFault::BlackHole(BLACK_HOLE)),
        on_path(family, "data-lost", "loses data after the handshake").with_fault(family, PathFault::NoData),
    ]
}

fn on_path(family: Family, what: &str, label: &str) -> Scenario {
    Scenario::new(&path_scenario(family, what), &format!("{} {label}", family_label(family)))
}

fn list_records(family: Family) -> Vec<Scenario> {
    let normal = Scenario::new("", "").records_mut(family).clone();
    vec![
        with_answer(family, "late", "is 1 s late", Records { delay: LATE, ..normal.clone() }).quick(),
        with_answer(family, "lost", "is lost", Records { outcome: QueryOutcome::Lost, ..normal.clone() }),
        with_answer(family, "servfail", "is SERVFAIL", Records { outcome: QueryOutcome::Failed, ..normal }),
    ]
}

fn with_answer(family: Family, what: &str, label: &str, records: Records) -> Scenario {
    let label = format!("the {} answer {label}", record_type(family));
    Scenario::new(&record_scenario(family, what), &label).with_records(family, records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_scenario_has_a_name_and_differs() {
        let all = list(ScenarioSet::All);
        let names: BTreeSet<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for name in
            ["both", "ipv6-drop", "ipv4-reset", "aaaa-late", "a-servfail", "only-a", "only-aaaa", "nat64"]
        {
            assert!(names.contains(name), "{name}");
        }
        for scenario in &all {
            let same = all.iter().filter(|other| {
                (other.paths, &other.a, &other.aaaa) == (scenario.paths, &scenario.a, &scenario.aaaa)
            });
            assert_eq!(same.count(), 1, "{}", scenario.name);
        }
    }

    #[test]
    fn quick_scenarios_are_some_of_all() {
        let all = list(ScenarioSet::All);
        let quick = list(ScenarioSet::Quick);
        assert!(quick.len() < all.len() / 2 && quick.iter().all(|scenario| all.contains(scenario)));
    }
}
