//! Compares what the kernels counted while another program drove a trial with the plan: family, size and packets. What
//! the program says of itself is not judged here: it is its bias.

use crate::engine::bias::{headers, payload};
use stacklab_model::{ETHERNET_HEADER_BYTES, Family, HostReport, Transport, TrialSpec, wire_size};
use stacklab_trial::Path;

/// Tolerance of a ratio of counters, and packets of other protocols that a trial may include: as for stacklab's own.
const TOLERANCE: f64 = 0.01;
const OTHER_PACKETS: u64 = 16;
/// Bytes that a packet of a control connection may have beside those of the data, at most.
const CONTROL_BYTES: f64 = 1500.0;

/// Every contradiction of a trial with its plan.
pub(super) fn contradictions(
    spec: &TrialSpec,
    path: &Path,
    [sender, receiver]: [&HostReport; 2],
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, report, own, counter) in [
        ("sender", sender, path.sender.ip(), "OutRequests"),
        ("receiver", receiver, path.receiver.ip(), "InReceives"),
    ] {
        let of = |family: Family| match family {
            Family::Ipv4 => report.counters.get(&format!("ip.{counter}")),
            Family::Ipv6 => report.counters.get(&format!("ip6.{counter}")),
        };
        let family = Family::of(own);
        let other = if family == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
        let (own, others) = (of(family), of(other));
        if others as f64 > own as f64 * TOLERANCE + OTHER_PACKETS as f64 {
            found.push(format!(
                "the {name} counted {others} packets of {other} and {own} of {family}, planned is {family}"
            ));
        }
    }
    let mtu = path.path_mtus()[0];
    for (name, report, way, own) in
        [("sender", sender, "tx", path.sender.ip()), ("receiver", receiver, "rx", path.receiver.ip())]
    {
        let family = Family::of(own);
        let counted = payload(&report.counters, way, spec, family, mtu);
        if counted < f64::from(spec.message_bytes) {
            found.push(format!("the {name}'s interface counted {counted:.0} bytes of payload"));
        } else if spec.transport == Transport::Udp {
            found.extend(size(spec, family, mtu, (name, report, way)));
        }
    }
    found
}

/// A size of packets other than that of the planned messages.
fn size(
    spec: &TrialSpec,
    family: Family,
    mtu: u32,
    (name, report, way): (&str, &HostReport, &str),
) -> Option<String> {
    let of = |name: &str| report.counters.get(&format!("interface.{way}_{name}")) as f64;
    let (bytes, packets) = (of("bytes"), of("packets"));
    let pieces = f64::from(wire_size(family, spec.transport, spec.message_bytes, mtu).packets);
    let planned = f64::from(spec.message_bytes) / pieces + headers(spec, family, mtu);
    let control = report.counters.get(if way == "tx" { "tcp.OutSegs" } else { "tcp.InSegs" }) as f64;
    let others = control + OTHER_PACKETS as f64;
    let room = planned * TOLERANCE + others * CONTROL_BYTES / packets;
    let found = bytes / packets;
    let payload = |packet: f64| packet - f64::from(ETHERNET_HEADER_BYTES);
    ((found - planned).abs() > room).then(|| {
        format!(
            "an IP packet of the {name} has {:.1} bytes, planned are {:.1} in each",
            payload(found),
            payload(planned)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{path, received, trial_and_spec};
    use stacklab_model::Counters;

    /// A host that counted so many packets of messages of 1000 bytes, and their bytes.
    fn host(family: &str, packets: u64, each: u64) -> HostReport {
        let mut report = received(0, 0.0);
        let names = [
            (format!("{family}.OutRequests"), packets),
            (format!("{family}.InReceives"), packets),
            ("interface.tx_packets".to_owned(), packets),
            ("interface.rx_packets".to_owned(), packets),
            ("interface.tx_bytes".to_owned(), packets * each),
            ("interface.rx_bytes".to_owned(), packets * each),
        ];
        report.counters = Counters(names.into());
        report
    }

    #[test]
    fn family_size_and_packets_are_compared_with_the_plan() {
        let (_, mut spec) = trial_and_spec();
        let path = path();
        let planned = Family::of(path.sender.ip());
        (spec.transport, spec.message_bytes) = (Transport::Udp, 1000);
        let (own, other) = match planned {
            Family::Ipv4 => ("ip", "ip6"),
            Family::Ipv6 => ("ip6", "ip"),
        };
        let each = 1000 + headers(&spec, planned, 1500) as u64;
        let found = |host: &HostReport| contradictions(&spec, &path, [host, host]);
        assert_eq!(found(&host(own, 5000, each)), [""; 0]);
        let wrong = found(&host(other, 5000, each));
        assert!(wrong.len() == 2 && wrong[0].contains("5000 packets of"), "{wrong:?}");
        let wrong = found(&host(own, 5000, each + 20));
        assert!(wrong.len() == 2 && wrong[0].starts_with("an IP packet of the sender has"), "{wrong:?}");
        let wrong = found(&host(own, 0, each));
        assert!(wrong[0].ends_with("counted 0 bytes of payload"), "{wrong:?}");
    }
}
