//! Figures from the counters of the routers between a trial's hosts.

use crate::trial::source::ReportSource;
use stacklab_model::{
    Counters, ETHERNET_HEADER_BYTES, Family, HostReport, Mechanism, Metric, Probe, Role, Transport,
    TrialSpec, Value, WirePath,
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
pub(super) fn add_router_figures(
    mut made: Figures,
    sources: &[ReportSource],
    routers: &RouterEvidence,
    spec: &TrialSpec,
    mtu: u32,
) -> Figures {
    if spec.probe.probe != Probe::Stream {
        return made;
    }
    add_fragments(&mut made, routers);
    // In an interleaved trial the window covers the other arms' turns too.
    if spec.schedule.is_alone() {
        made.values.insert(Metric::CpuRouter1, busy_percent(routers.busy[0]));
        made.values.insert(Metric::CpuRouter2, busy_percent(routers.busy[1]));
    }
    if spec.transport == Transport::Udp
        && let Some(sender) = made.host_reports.iter().position(|report| report.role == Role::Sender)
    {
        let is_forward = sources[sender].forward;
        let found = match made.host_reports.len() {
            2 => measure_link(&made.host_reports[sender], is_forward, routers, spec, mtu),
            _ => Err("not available with direction both"),
        };
        let found = found.unwrap_or_else(|reason| {
            let missing = Value::Missing(reason.to_owned());
            LinkFigures { bytes: missing.clone(), beyond: missing }
        });
        made.values.insert(Metric::LinkBytes, found.bytes);
        made.values.insert(Metric::LinkBytesBeyond, found.beyond);
    }
    made
}

impl RouterEvidence {
    /// By how much a counter of a router grew during the trial.
    fn growth(&self, router: usize, name: &str) -> u64 {
        self.after[router].get(name).saturating_sub(self.before[router].get(name))
    }
}

/// Fragments of both routers, per message. Streams of both directions cross the routers.
fn add_fragments(made: &mut Figures, routers: &RouterEvidence) {
    let sent = made.host_reports.iter().filter(|report| report.role == Role::Sender);
    let messages: u64 = sent.map(|report| report.sent.of_trial()).sum();
    for (metric, name) in
        [(Metric::IpFragCreatesRouters, "FragCreates"), (Metric::IpReasmOksRouters, "ReasmOKs")]
    {
        let mut count = 0;
        for router in [0, 1] {
            count += routers.growth(router, &format!("ip.{name}"));
            count += routers.growth(router, &format!("ip6.{name}"));
        }
        let value = Value::finite(count as f64 / messages as f64, "no message was sent");
        made.values.insert(metric, value);
    }
}

fn busy_percent(busy: Option<Busy>) -> Value {
    match busy {
        Some(Busy { ns, of_ns }) => Value::finite(ns as f64 * 100.0 / of_ns as f64, "the window was empty"),
        None => Value::Missing("the router counts no CPU time".to_owned()),
    }
}

/// What crossed the link between the routers for each message.
struct LinkFigures {
    /// IP bytes.
    bytes: Value,
    /// By how much they exceed the header model, per cent.
    beyond: Value,
}

/// Compares the counters of the sender's router with the header model. Fails with the reason if the model has no such
/// message.
fn measure_link(
    sender: &HostReport,
    is_forward: bool,
    routers: &RouterEvidence,
    spec: &TrialSpec,
    mtu: u32,
) -> Result<LinkFigures, &'static str> {
    // In reverse, the sender is at the far router, and translators work in the opposite direction.
    let mechanism = if is_forward { routers.mechanism } else { routers.mechanism.reverse() };
    let router = usize::from(!is_forward);
    let family = Family::of(sender.endpoint.local.ip());
    let bytes = routers.growth(router, "interface.tx_bytes");
    let packets = routers.growth(router, "interface.tx_packets");
    let ip_bytes = bytes.saturating_sub(packets * u64::from(ETHERNET_HEADER_BYTES)) as f64;
    let path = WirePath { mechanism, ..WirePath::plain(family, spec.transport, mtu) };
    let model = path.wire_size(spec.message_bytes).ok_or("the header model has no such message")?;
    // Over packets, not over messages that arrived: what is lost behind the link has crossed it.
    let each = ip_bytes / packets as f64 * f64::from(model.packets);
    let beyond = 100.0 * (each / f64::from(model.ip_bytes) - 1.0);
    Ok(LinkFigures {
        bytes: Value::finite(each, "nothing crossed the link"),
        beyond: Value::finite(beyond, "nothing crossed the link"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{make_receiver_report, stream_of};
    use crate::trial::source::report_sources;
    use stacklab_model::Direction;

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
            let mut sent = make_receiver_report(0, 0.0);
            (sent.role, sent.sent.measured) = (Role::Sender, 1000);
            let sent = HostReport { received: Default::default(), ..sent };
            let (spec, made) = stream_of(vec![sent, make_receiver_report(0, 0.0)]);
            let made = add_router_figures(made, &report_sources(direction), &routers, &spec, 1500);
            assert_eq!(made.values[&Metric::LinkBytes], Value::Measured(each), "{direction}");
            assert_eq!(made.values[&Metric::CpuRouter1], Value::Measured(25.0));
            assert!(matches!(made.values[&Metric::CpuRouter2], Value::Missing(_)));
            assert_eq!(made.values[&Metric::IpFragCreatesRouters], Value::Measured(2.0));
        }
    }
}
