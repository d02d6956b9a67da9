//! Makes a run from a test with iperf3: its server's figures are its word, and are compared with what was counted here.

use crate::iperf3::StreamResult;
use crate::iperf3::client::ClientRun;
use stacklab_model::{
    Drops, Endpoint, HostReport, Metric, Role, RunRecord, RunStatus, Transport, Trial, TrialSpec, Value,
    Warning,
};
use stacklab_traffic::foreign::{Counted, ReceivedCounts, Way};
use stacklab_trial::results::{drops, values};
use stacklab_trial::{Path, validate};
use std::collections::BTreeMap;

/// What the interface of the peer's report is called: nobody knows it here.
const THEIR_INTERFACE: &str = "iperf3";

/// The run of a test. The peer's streams are in the order of their numbers.
pub fn run_of(trial: &Trial, spec: TrialSpec, path: &Path, outcome: &ClientRun) -> RunRecord {
    let mut transfers = Vec::new();
    let mut found = Vec::new();
    for own in &outcome.own {
        let way = if own.role == Role::Sender { Way::Send } else { Way::Receive };
        let transfer = Transfer { spec: &spec, outcome, own, way };
        found.extend(transfer.contradictions());
        transfers.push(transfer);
    }
    let host_reports: Vec<HostReport> = transfers.iter().flat_map(Transfer::reports).collect();
    let mut made = transfers.first().map(|first| first.values(path)).unwrap_or_default();
    if let [_, back] = &transfers[..] {
        let rate = back.values(path).remove(&Metric::Throughput);
        made.insert(Metric::ThroughputReverse, rate.unwrap_or_else(|| unknown("the other direction")));
    }
    RunRecord {
        trial: trial.clone(),
        started_unix_ns: outcome.started_unix_ns,
        wall_ns: outcome.wall_ns,
        status: RunStatus::of(found),
        values: made,
        drops: match host_reports.as_slice() {
            [sent, received, ..] => drops(&spec, sent, received),
            _ => Drops::default(),
        },
        host_reports,
        warnings: transfers.iter().map(Transfer::word).collect(),
        spec,
    }
}

fn unknown(what: &str) -> Value {
    Value::Missing(format!("iperf3 does not report {what}"))
}

struct Transfer<'a> {
    spec: &'a TrialSpec,
    outcome: &'a ClientRun,
    own: &'a HostReport,
    way: Way,
}

impl Transfer<'_> {
    /// The peer's results of these streams, each with what was counted here.
    fn pairs(&self) -> impl Iterator<Item = (Option<&StreamResult>, &Counted)> {
        let all = self.outcome.counted.iter().enumerate();
        all.filter(|(_, (way, _))| *way == self.way)
            .map(|(place, (_, counted))| (self.outcome.peer.of_place(place), counted))
    }

    fn theirs(&self) -> impl Iterator<Item = &StreamResult> {
        self.pairs().filter_map(|(theirs, _)| theirs)
    }

    fn received(&self) -> impl Iterator<Item = &ReceivedCounts> {
        self.pairs().filter_map(|(_, counted)| match counted {
            Counted::Received(counts) => Some(counts),
            Counted::Sent(_) => None,
        })
    }

    fn contradictions(&self) -> Vec<String> {
        let streams = self.pairs().map(|(theirs, counted)| {
            (counted, theirs.map(|StreamResult { bytes, packets, .. }| [*bytes, *packets]))
        });
        validate::peer(self.spec, self.own, &streams.collect::<Vec<_>>())
    }

    /// Payload that the peer says it received or sent, bytes.
    fn their_bytes(&self) -> u64 {
        self.theirs().map(|stream| stream.bytes).fold(0, u64::saturating_add)
    }

    /// Messages of the measured part by the peer's word: for TCP, what would be.
    fn their_messages(&self) -> u64 {
        let of = |stream: &StreamResult| match (self.spec.transport, self.way) {
            (Transport::Tcp, _) => stream.bytes / u64::from(self.spec.message_bytes).max(1),
            (Transport::Udp, Way::Send) => {
                let lost = stream.errors.saturating_sub(stream.omitted_errors);
                stream.packets.saturating_sub(stream.omitted_packets).saturating_sub(lost)
            }
            (Transport::Udp, Way::Receive) => stream.packets.saturating_sub(stream.omitted_packets),
        };
        self.theirs().map(of).fold(0, u64::saturating_add)
    }

    /// Sender's and receiver's report: this host's, and one of the peer's word.
    fn reports(&self) -> [HostReport; 2] {
        let own = self.own.clone();
        // Of the path, what this host knows of it.
        let endpoint = Endpoint {
            local: own.endpoint.peer,
            peer: own.endpoint.local,
            interface: THEIR_INTERFACE.to_owned(),
            offloads: Default::default(),
            congestion_control: self.outcome.peer.congestion_used.clone(),
            options: Default::default(),
            ..own.endpoint.clone()
        };
        let (bytes, messages) = (self.their_bytes(), self.their_messages());
        match self.way {
            Way::Send => {
                let mut theirs = HostReport::new(Role::Receiver, endpoint);
                theirs.received.bytes = bytes;
                theirs.received.measured = messages;
                theirs.received.first_ns = own.sent.first_ns;
                theirs.received.last_ns = own.sent.first_ns + self.outcome.window_ns;
                [own, theirs]
            }
            Way::Receive => {
                let mut theirs = HostReport::new(Role::Sender, endpoint);
                theirs.sent.bytes = bytes;
                (theirs.sent.warmup, theirs.sent.measured) = (own.received.warmup, messages);
                theirs.sent.first_ns = own.received.first_ns;
                theirs.sent.last_ns = own.received.last_ns;
                [theirs, own]
            }
        }
    }

    fn values(&self, path: &Path) -> BTreeMap<Metric, Value> {
        let [sender, receiver] = self.reports();
        let (sent, received) = (&sender.sent, &receiver.received);
        let mut made = values(self.spec, path, &sender, &receiver);
        let mut set = |metrics: &[Metric], value: Value| {
            let metrics = metrics.iter().filter(|metric| metric.applies_to(self.spec.transport));
            made.extend(metrics.map(|metric| (*metric, value.clone())));
        };
        let seconds = received.last_ns.saturating_sub(received.first_ns) as f64 / 1e9;
        let rate = |amount: f64| Value::finite(amount / seconds, "all arrived at one time");
        set(&[Metric::Throughput], rate(received.bytes as f64 * 8.0 / 1e6));
        let messages = match self.spec.transport {
            Transport::Udp => rate(received.measured as f64),
            Transport::Tcp => unknown("message boundaries: TCP has none"),
        };
        set(&[Metric::MessageRate], messages);
        let jitters: Vec<f64> = match self.way {
            Way::Send => self.theirs().map(|stream| stream.jitter_s * 1e3).collect(),
            Way::Receive => self.received().map(|counts| counts.jitter_ns / 1e6).collect(),
        };
        let jitter = jitters.iter().sum::<f64>() / jitters.len() as f64;
        let smoothed = format!("iperf3 reports only the smoothed jitter (RFC 3550): {jitter:.4} ms");
        set(&[Metric::Jitter], Value::Missing(smoothed));
        set(&[Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Pdv], unknown("delays"));
        set(&[Metric::JitterRfc3550], Value::finite(jitter, "there was no stream"));
        match self.way {
            Way::Send => {
                set(&[Metric::Duplicate, Metric::Reorder], unknown("copies and reordered datagrams apart"));
                set(&[Metric::Fairness, Metric::IpReasmOks], unknown("it"));
                let lost = sent.measured.saturating_sub(received.measured) as f64;
                set(&[Metric::Loss], Value::finite(lost / sent.measured as f64, "nothing was sent"));
            }
            Way::Receive => {
                let sum = |of: fn(&ReceivedCounts) -> u64| {
                    self.received().map(of).fold(0, u64::saturating_add) as f64
                };
                let seen = sum(|counts| counts.next.saturating_sub(counts.omitted_next));
                let lost = sum(|counts| counts.lost.saturating_sub(counts.omitted_lost));
                set(&[Metric::Loss], Value::finite(lost / seen, "nothing arrived"));
                set(&[Metric::IpFragCreates, Metric::PathMtu], unknown("it"));
                let again: Option<u64> = self.theirs().map(|stream| stream.retransmits).sum();
                let each = |count| Value::finite(count as f64 / sent.of_trial() as f64, "nothing was sent");
                set(&[Metric::Retransmits], again.map_or_else(|| unknown("retransmissions"), each));
            }
        }
        made
    }

    /// The peer's word beside what was counted here.
    fn word(&self) -> Warning {
        let [sent, received] = [self.own.sent.bytes, self.own.received.bytes];
        let (did, own_did, own, counter, advice) = match self.way {
            Way::Send => {
                let advice = "the figures of the receiver are the server's word";
                ("received", "sent", sent, "interface.tx_bytes", advice)
            }
            Way::Receive => {
                let advice = "the figures are those of this host";
                ("sent", "received", received, "interface.rx_bytes", advice)
            }
        };
        let (theirs, counted) = (self.their_bytes(), self.own.counters.get(counter));
        Warning {
            code: "peer_word".to_owned(),
            text: format!(
                "the iperf3 server reports that it {did} {theirs} bytes; this host {own_did} {own} bytes, and its interface counted {counted} bytes with headers and other traffic"
            ),
            advice: advice.to_owned(),
        }
    }
}
