//! The flows of several customers: the receiver sees each from its customer's address and ports, and no two from the
//! same port of one address.

use crate::path::Path;
use stacklab_model::HostReport;
use std::net::SocketAddr;

/// What the flows break, by where the receiver saw them come from.
pub(super) fn check_flows(path: &Path, receiver: &HostReport) -> Vec<String> {
    let mut reasons = Vec::new();
    if path.customers.is_empty() {
        return reasons;
    }
    let mut before: Vec<SocketAddr> = Vec::new();
    let mut heard = vec![false; path.customers.len()];
    for (flow, sources) in receiver.flow_sources.iter().enumerate() {
        let place = flow % path.customers.len();
        heard[place] |= !sources.is_empty();
        for source in sources {
            reasons.extend(check_source(path, flow, place, *source));
            if before.contains(source) {
                reasons.push(format!("flow {} comes from {source}, as another flow does", flow + 1));
            }
        }
        before.extend(sources);
    }
    for (place, _) in heard.iter().enumerate().filter(|(_, heard)| !**heard) {
        reasons.push(format!("nothing of customer {} reached the receiver", place + 1));
    }
    reasons
}

fn check_source(path: &Path, flow: usize, place: usize, source: SocketAddr) -> Option<String> {
    let customer = &path.customers[place];
    if source.ip() == customer.source && customer.ports.contain(source.port()) {
        return None;
    }
    Some(format!(
        "flow {} of customer {} comes from {source}, planned are {} of {}",
        flow + 1,
        place + 1,
        customer.ports,
        customer.source
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{Customer, CustomerPorts, Family, Transport, Uplink};

    /// What is wrong with two flows of two customers that have a thousand ports each.
    fn check(sources: [&[&str]; 2]) -> Vec<String> {
        let mut path = fixtures::path(Family::Ipv4);
        for first in [1000, 2000] {
            let uplink = Uplink { interface: "st0".to_owned(), address: path.sender.ip() };
            let ports = CustomerPorts::Range { first, last: first + 999 };
            path.customers.push(Customer { uplink, source: [192, 0, 2, 1].into(), ports });
        }
        let (_, mut receiver) = fixtures::host_reports(&fixtures::spec(Family::Ipv4, Transport::Udp));
        receiver.flow_sources =
            sources.map(|all| all.iter().map(|text| text.parse().unwrap()).collect()).into();
        check_flows(&path, &receiver)
    }

    #[test]
    fn each_flow_comes_from_its_customers_ports() {
        assert_eq!(check([&["192.0.2.1:1000"], &["192.0.2.1:2999"]]), [""; 0]);
        assert_eq!(
            check([&["192.0.2.1:1000"], &["192.0.2.1:1999"]]),
            ["flow 2 of customer 2 comes from 192.0.2.1:1999, planned are ports 2000 to 2999 of 192.0.2.1"]
        );
        let other = check([&["192.0.2.2:1000"], &["192.0.2.1:2000"]]);
        assert!(other[0].starts_with("flow 1 of customer 1 comes from 192.0.2.2:1000"), "{other:?}");
    }

    #[test]
    fn a_second_source_breaks_a_run_too() {
        let moved = check([&["192.0.2.1:1000", "192.0.2.1:2500"], &["192.0.2.1:2000"]]);
        assert_eq!(moved.len(), 1, "{moved:?}");
        let same = check([&["192.0.2.1:1000"], &["192.0.2.1:1000"]]);
        assert!(same[1].contains("as another flow does"), "{same:?}");
    }

    #[test]
    fn each_customer_is_heard() {
        assert_eq!(check([&["192.0.2.1:1000"], &[]]), ["nothing of customer 2 reached the receiver"]);
    }
}
