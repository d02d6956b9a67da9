//! Rates, fairness and where messages were dropped.

use stacklab_model::{Drops, HostReport, LARGEST_NUMBER, Probe, Received, Sent, Transport, TrialSpec, Value};

/// An amount per second of the measured window.
pub(super) fn rate(amount: f64, seconds: f64) -> Value {
    match seconds {
        0.0 => Value::Missing(
            "all messages arrived at the same time: a rate needs a longer test, or more messages".to_owned(),
        ),
        seconds => Value::Measured(amount / seconds),
    }
}

/// Messages that arrived, by their bytes, and seconds in which they did: after the first receive, until the last one.
/// Where arrivals took less than half of the time of sending, most were lost, and how close the few came to each other
/// says nothing of the rate: then all, in the time of sending.
pub(super) fn arrivals(spec: &TrialSpec, sent: &Sent, received: &Received) -> (f64, f64) {
    let span = |first: u64, last: u64| last.saturating_sub(first) as f64 / 1e9;
    let (arriving, sending) = (span(received.first_ns, received.last_ns), span(sent.first_ns, sent.last_ns));
    let bytes = received.bytes.saturating_add(received.cut_bytes);
    let messages = |bytes: u64| bytes as f64 / f64::from(spec.message_bytes.max(1));
    if arriving > 0.0 && arriving < sending / 2.0 {
        return (messages(bytes), sending);
    }
    (messages(bytes.saturating_sub(received.bytes_at_first)), arriving)
}

/// Jain's fairness index over the flows: (sum x)^2 / (n sum x^2).
pub(super) fn jain(flows: &[u64]) -> Value {
    if flows.len() < 2 {
        return Value::Missing("fairness needs more than one flow".to_owned());
    }
    let sum: f64 = flows.iter().map(|bytes| *bytes as f64).sum();
    let squares: f64 = flows.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
    Value::finite(sum * sum / (flows.len() as f64 * squares), "nothing arrived in any flow")
}

/// Where messages were lost, over the whole trial. TCP shows no loss to its user.
pub fn drops(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Drops {
    if spec.transport == Transport::Tcp || spec.probe.probe != Probe::Stream {
        return Drops::default();
    }
    let received = &receiver.received;
    let mut lost = (sender.sent.warmup + sender.sent.measured)
        .saturating_sub(received.warmup + received.measured + received.beyond_window)
        .min(LARGEST_NUMBER);
    let total = lost;
    // A counter may include a lost end marker; no part exceeds the whole.
    let mut part = |counted: u64| {
        let taken = counted.min(lost);
        lost -= taken;
        taken
    };
    let sum =
        |side: &HostReport, names: &[&str]| names.iter().map(|name| side.counters.get(name)).sum::<u64>();
    let sender_queue = part(sum(sender, &["udp.SndbufErrors", "udp6.SndbufErrors"]));
    let socket_buffer = part(receiver.counters.get("socket.drops"));
    let interface = part(
        sum(sender, &["interface.tx_dropped", "interface.tx_errors"])
            + sum(receiver, &["interface.rx_dropped", "interface.rx_errors"]),
    );
    Drops {
        sender_queue,
        interface,
        socket_buffer,
        network: total - sender_queue - socket_buffer - interface,
    }
}
