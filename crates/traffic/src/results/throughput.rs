//! Rates, fairness and where messages were dropped.

use stacklab_model::{Drops, HostReport, LARGEST_NUMBER, Probe, Transport, TrialSpec, Value};

/// An amount per second of the measured window.
pub(super) fn rate(amount: f64, seconds: f64) -> Value {
    match seconds {
        0.0 => Value::Missing("all messages have the same arrival time".to_owned()),
        seconds => Value::Measured(amount / seconds),
    }
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
