//! What a document of iperf3 counts in one direction of a test.

use crate::json::Json;
use crate::value::Datagrams;

/// The streams of one direction of a test.
#[derive(Default)]
pub(super) struct DirectionCounts {
    pub(super) streams: u32,
    /// Streams with counts of the sender, and of the receiver.
    pub(super) senders: u32,
    pub(super) receivers: u32,
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) end: f64,
    pub(super) retransmits: Option<f64>,
    pub(super) rtts: Vec<f64>,
    pub(super) jitters: Vec<f64>,
    /// The receiver's counts of each stream.
    pub(super) datagrams: Vec<Datagrams>,
    pub(super) late: f64,
    pub(super) sends: bool,
}

impl DirectionCounts {
    /// Adds what both ends counted of a stream.
    pub(super) fn add(&mut self, stream: &Json) {
        self.streams += 1;
        let udp = &stream["udp"];
        let sender = &stream["sender"];
        let receiver = &stream["receiver"];
        self.senders += u32::from(stream.get("sender").is_some());
        self.receivers += u32::from(stream.get("receiver").is_some());
        self.jitters.extend(udp.count("jitter_ms"));
        // Duplicates make a count of losses negative.
        let lost = udp.number("lost_packets").unwrap_or(0.0);
        self.datagrams.push(Datagrams { lost, sent: or_0(udp, "packets") });
        self.late += or_0(udp, "out_of_order");
        self.sent += or_0(sender, "bytes");
        if let Some(count) = sender.count("retransmits") {
            *self.retransmits.get_or_insert(0.0) += count;
        }
        self.rtts.extend(sender.count("mean_rtt").filter(|rtt| *rtt > 0.0));
        self.received += or_0(receiver, "bytes");
        self.end = self.end.max(or_0(receiver, "end") - or_0(receiver, "start"));
    }
}

/// A count of a document; 0 where it has none.
pub(super) fn or_0(node: &Json, name: &str) -> f64 {
    node.count(name).unwrap_or(0.0)
}
