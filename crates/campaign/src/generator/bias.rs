//! How far a generator's own count of payload is from what the interfaces counted, less the headers of the model.

use stacklab_model::{Counters, Family, Metric, Probe, RunStatus, TrialSpec, Value};
use stacklab_trial::validate::counted_payload;
use stacklab_trial::{Figures, Path};

/// Adds the bias of the generator that drove a trial.
pub(crate) fn with_bias(mut made: Figures, spec: &TrialSpec, path: &Path) -> Figures {
    if made.status != RunStatus::Valid || !spec.schedule.is_alone() || spec.probe.probe != Probe::Stream {
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
    let reported = [
        bytes(sender.tool.is_some(), sent.bytes, sent.warmup + sent.measured + sent.markers),
        bytes(receiver.tool.is_some(), received.bytes, received.warmup + received.measured),
    ];
    let dropped = drops_of(&receiver.counters) as f64 * f64::from(spec.message_bytes);
    let mtu = path.path_mtus()[0];
    // Of another family than the sender's behind a translator.
    let [here, there] = [path.sender.ip(), path.receiver.ip()].map(Family::of);
    let counted = [
        counted_payload(&sender.counters, "tx", spec, here, mtu),
        counted_payload(&receiver.counters, "rx", spec, there, mtu) - dropped,
    ];
    for (metric, (reported, counted)) in [Metric::GeneratorTxError, Metric::GeneratorRxError]
        .into_iter()
        .zip(reported.into_iter().zip(counted))
    {
        let value = match reported {
            Some(reported) => {
                Value::finite(100.0 * (reported as f64 / counted - 1.0), "the interface counted no payload")
            }
            None => Value::Missing("the generator does not report its bytes".to_owned()),
        };
        made.values.insert(metric, value);
    }
    made
}

/// Datagrams that a host's kernel dropped for want of room in a socket.
pub(super) fn drops_of(counters: &Counters) -> u64 {
    counters.get("udp.RcvbufErrors") + counters.get("udp6.RcvbufErrors")
}
