//! Figures from the counters of the routers between a trial's hosts.

use crate::trial::source::ReportSource;
use stacklab_model::{
    Counters, ETHERNET_HEADER_BYTES, Family, Mechanism, Metric, Probe, Role, Transport, TrialSpec, Value,
    WirePath,
};
use stacklab_trial::Figures;

/// What the two routers counted in a trial, and their mechanism.
#[derive(Debug)]
pub(crate) struct RouterEvidence {
    pub mechanism: Mechanism,
    /// Counters of the sender's router and the receiver's router, before the trial.
    pub before: [Counters; 2],
    pub after: [Counters; 2],
    /// Their CPU time in the measured window; that of a guest's processes, over the whole trial. `None` if it was not
    /// counted.
    pub busy: [Option<Busy>; 2],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Busy {
    /// Busy time, nanoseconds.
    pub ns: u64,
    /// Length of the window, nanoseconds.
    pub of_ns: u64,
}

/// Adds the routers' figures to those of a stream.
pub(super) fn counted(
    mut made: Figures,
    sources: &[ReportSource],
    routers: &RouterEvidence,
    spec: &TrialSpec,
    mtu: u32,
) -> Figures {
    if spec.probe.probe != Probe::Stream {
        return made;
    }
    let RouterEvidence { mechanism, before, after, busy } = routers;
    let moved = |router: usize, name: &str| after[router].get(name).saturating_sub(before[router].get(name));
    // Streams of both directions cross the routers.
    let sent = made.host_reports.iter().filter(|report| report.role == Role::Sender);
    let messages: u64 = sent.map(|report| report.sent.of_trial()).sum();
    let both = |name: &str| {
        let of = |router| moved(router, &format!("ip.{name}")) + moved(router, &format!("ip6.{name}"));
        Value::finite((of(0) + of(1)) as f64 / messages as f64, "no message was sent")
    };
    let busy = |router: usize| match busy[router] {
        Some(Busy { ns, of_ns }) => Value::finite(ns as f64 * 100.0 / of_ns as f64, "the window was empty"),
        None => Value::Missing("the router counts no CPU time".to_owned()),
    };
    made.values.insert(Metric::IpFragCreatesRouters, both("FragCreates"));
    made.values.insert(Metric::IpReasmOksRouters, both("ReasmOKs"));
    // In an interleaved trial the window covers the other arms' turns too.
    if spec.schedule.is_alone() {
        made.values.insert(Metric::CpuRouter1, busy(0));
        made.values.insert(Metric::CpuRouter2, busy(1));
    }
    let Some(sent) = made.host_reports.iter().position(|report| report.role == Role::Sender) else {
        return made;
    };
    if spec.transport != Transport::Udp {
        return made;
    }
    let without = |mut made: Figures, reason: &str| {
        for metric in [Metric::LinkBytes, Metric::LinkBytesBeyond] {
            made.values.insert(metric, Value::Missing(reason.to_owned()));
        }
        made
    };
    if made.host_reports.len() != 2 {
        return without(made, "not available with direction both");
    }
    // In reverse, the sender is at the far router, and translators work in the opposite direction.
    let forward = sources[sent].forward;
    let sent = &made.host_reports[sent];
    let family = Family::of(sent.endpoint.local.ip());
    let mechanism = if forward { *mechanism } else { mechanism.reversed() };
    let router = usize::from(!forward);
    let bytes = moved(router, "interface.tx_bytes");
    let packets = moved(router, "interface.tx_packets");
    let ip_bytes = bytes.saturating_sub(packets * u64::from(ETHERNET_HEADER_BYTES)) as f64;
    let path = WirePath { mechanism, ..WirePath::plain(family, spec.transport, mtu) };
    let Some(model) = path.wire_size(spec.message_bytes) else {
        return without(made, "the header model has no such message");
    };
    // Over packets, not over messages that arrived: what is lost behind the link has crossed it.
    let each = ip_bytes / packets as f64 * f64::from(model.packets);
    let beyond = 100.0 * (each / f64::from(model.ip_bytes) - 1.0);
    made.values.insert(Metric::LinkBytes, Value::finite(each, "nothing crossed the link"));
    made.values.insert(Metric::LinkBytesBeyond, Value::finite(beyond, "nothing crossed the link"));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{received, stream_of};
    use crate::trial::source::report_sources;
    use stacklab_model::{Direction, HostReport};

    fn count(bytes: u64, packets: u64) -> Counters {
        let counters =
            [("interface.tx_bytes", bytes), ("interface.tx_packets", packets), ("ip.FragCreates", packets)];
        Counters(counters.map(|(name, count)| (name.to_owned(), count)).into())
    }

    #[test]
    fn router_at_the_sender_tells_bytes_of_each_packet() {
        let routers = RouterEvidence {
            mechanism: Mechanism::Native,
            before: [count(0, 0), count(0, 0)],
            after: [count(1_448_000, 1000), count(114_000, 1000)],
            busy: [Some(Busy { ns: 25, of_ns: 100 }), None],
        };
        for (direction, each) in [(Direction::Forward, 1434.0), (Direction::Reverse, 100.0)] {
            let mut sent = received(0, 0.0);
            (sent.role, sent.sent.measured) = (Role::Sender, 1000);
            let sent = HostReport { received: Default::default(), ..sent };
            let (spec, made) = stream_of(vec![sent, received(0, 0.0)]);
            let made = counted(made, &report_sources(direction), &routers, &spec, 1500);
            assert_eq!(made.values[&Metric::LinkBytes], Value::Measured(each), "{direction}");
            assert_eq!(made.values[&Metric::CpuRouter1], Value::Measured(25.0));
            assert!(matches!(made.values[&Metric::CpuRouter2], Value::Missing(_)));
            assert_eq!(made.values[&Metric::IpFragCreatesRouters], Value::Measured(2.0));
        }
    }
}
