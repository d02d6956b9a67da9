//! How far an engine's own count of payload is from what the interfaces counted, less the headers of the model.

use stacklab_model::{
    Counters, ETHERNET_HEADER_BYTES, Family, Metric, Probe, RunStatus, TrialSpec, Value, wire_size,
};
use stacklab_trial::{Figures, Path};

/// Adds the bias of the engine that drove a trial.
pub(crate) fn with_bias(mut made: Figures, spec: &TrialSpec, path: &Path) -> Figures {
    if made.status != RunStatus::Valid || spec.slicing.is_some() || spec.probe.probe != Probe::Stream {
        return made;
    }
    let [sender, receiver] = &made.host_reports[..] else { return made };
    let bytes = |tool: bool, bytes: u64, messages: u64| match (tool, bytes) {
        (true, 0) => None,
        (true, bytes) => Some(bytes),
        // Warm-up and end markers are on the interface too.
        (false, _) => Some(messages * u64::from(spec.message_bytes)),
    };
    let (sent, received) = (&sender.sent, &receiver.received);
    let told = [
        bytes(sender.tool.is_some(), sent.bytes, sent.warmup + sent.measured + sent.markers),
        bytes(receiver.tool.is_some(), received.bytes, received.warmup + received.measured),
    ];
    let dropped = drops_of(&receiver.counters) as f64 * f64::from(spec.message_bytes);
    let mtu = path.path_mtus()[0];
    // Of another family than the sender's behind a translator.
    let [here, there] = [path.sender.ip(), path.receiver.ip()].map(Family::of);
    let counted = [
        payload(&sender.counters, "tx", spec, here, mtu),
        payload(&receiver.counters, "rx", spec, there, mtu) - dropped,
    ];
    for (metric, (told, counted)) in
        [Metric::GeneratorTxError, Metric::GeneratorRxError].into_iter().zip(told.into_iter().zip(counted))
    {
        let value = match told {
            Some(told) => {
                Value::finite(100.0 * (told as f64 / counted - 1.0), "the interface counted no payload")
            }
            None => Value::Missing("the generator does not report its bytes".to_owned()),
        };
        made.values.insert(metric, value);
    }
    made
}

/// Payload bytes in the packets that an interface counted, if all have the headers of the model's packets of a family.
pub(super) fn payload(counters: &Counters, way: &str, spec: &TrialSpec, family: Family, mtu: u32) -> f64 {
    let of = |name: &str| counters.get(&format!("interface.{way}_{name}")) as f64;
    of("bytes") - of("packets") * headers(spec, family, mtu)
}

/// Mean bytes of headers of a packet, as an interface counts it.
pub(super) fn headers(spec: &TrialSpec, family: Family, mtu: u32) -> f64 {
    let wire = wire_size(family, spec.transport, spec.message_bytes, mtu);
    let headers = f64::from(wire.ip_bytes) - f64::from(spec.message_bytes);
    headers / f64::from(wire.packets) + f64::from(ETHERNET_HEADER_BYTES)
}

/// Datagrams that a host's kernel dropped for want of room in a socket.
pub(super) fn drops_of(counters: &Counters) -> u64 {
    counters.get("udp.RcvbufErrors") + counters.get("udp6.RcvbufErrors")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{path, trial_and_spec};
    use stacklab_model::Transport;

    #[test]
    fn payload_is_what_is_left_of_the_bytes_of_an_interface() {
        let (_, mut spec) = trial_and_spec();
        for (family, transport, each) in [
            (Family::Ipv4, Transport::Udp, 14_u32 + 20 + 8),
            (Family::Ipv6, Transport::Udp, 14 + 40 + 8),
            (Family::Ipv6, Transport::Tcp, 14 + 40 + 32),
        ] {
            (spec.transport, spec.message_bytes) = (transport, 1000);
            assert_eq!(headers(&spec, family, 1500), f64::from(each));
            let counters = Counters(
                [("interface.tx_bytes", u64::from(7 * (1000 + each))), ("interface.tx_packets", 7)]
                    .map(|(name, count)| (name.to_owned(), count))
                    .into(),
            );
            assert_eq!(payload(&counters, "tx", &spec, family, 1500), 7000.0);
        }
        // Two fragments: one has UDP's header.
        (spec.transport, spec.message_bytes) = (Transport::Udp, 2000);
        assert_eq!(headers(&spec, Family::Ipv4, 1500), f64::from(14 + 20) + 4.0);
        assert_eq!(path().path_mtus(), [1500, 1500]);
    }
}
