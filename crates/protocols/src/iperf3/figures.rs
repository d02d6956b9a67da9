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

/// The streams of one direction.
struct Transfer<'a> {
    spec: &'a TrialSpec,
    outcome: &'a ClientRun,
    /// This host's report.
    own: &'a HostReport,
    way: Way,
}

impl Transfer<'_> {
    fn block(&self) -> u64 {
        u64::from(self.spec.message_bytes)
    }

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

    /// What the counts of both ends contradict.
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
            (Transport::Tcp, _) => stream.bytes / self.block().max(1),
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
        let Endpoint { family, transport, local, peer, interface_mtu, path_mtu, .. } = own.endpoint.clone();
        let endpoint = Endpoint {
            family,
            transport,
            local: peer,
            peer: local,
            interface: THEIR_INTERFACE.to_owned(),
            // The path, as this host knows it.
            interface_mtu,
            path_mtu,
            offloads: Default::default(),
            congestion_control: self.outcome.peer.congestion_used.clone(),
            options: Default::default(),
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
        let mut made = values(self.spec, path, &sender, &receiver);
        let mut set = |metric: Metric, value: Value| {
            if metric.applies_to(self.spec.transport) {
                made.insert(metric, value);
            }
        };
        let per_second =
            |amount: f64, ns: u64| Value::finite(amount / (ns as f64 / 1e9), "all arrived at one time");
        let window_ns = receiver.received.last_ns.saturating_sub(receiver.received.first_ns);
        set(Metric::Throughput, per_second(receiver.received.bytes as f64 * 8.0 / 1e6, window_ns));
        set(
            Metric::MessageRate,
            match self.spec.transport {
                Transport::Udp => per_second(receiver.received.measured as f64, window_ns),
                Transport::Tcp => unknown("message boundaries: TCP has none"),
            },
        );
        let jitters: Vec<f64> = match self.way {
            Way::Send => self.theirs().map(|stream| stream.jitter_s * 1e3).collect(),
            Way::Receive => self.received().map(|counts| counts.jitter_ns / 1e6).collect(),
        };
        let jitter = jitters.iter().sum::<f64>() / jitters.len() as f64;
        let smoothed = format!("iperf3 reports only the smoothed jitter (RFC 3550): {jitter:.4} ms");
        set(Metric::Jitter, Value::Missing(smoothed));
        for metric in [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Pdv] {
            set(metric, unknown("delays"));
        }
        set(Metric::JitterRfc3550, Value::finite(jitter, "there was no stream"));
        match self.way {
            Way::Send => {
                for metric in [Metric::Duplicate, Metric::Reorder] {
                    set(metric, unknown("copies and reordered datagrams apart"));
                }
                for metric in [Metric::Fairness, Metric::IpReasmOks] {
                    set(metric, unknown("it"));
                }
                let lost = sender.sent.measured.saturating_sub(receiver.received.measured);
                set(
                    Metric::Loss,
                    Value::finite(lost as f64 / sender.sent.measured as f64, "nothing was sent"),
                );
            }
            Way::Receive => {
                let sum = |of: fn(&ReceivedCounts) -> u64| {
                    self.received().map(of).fold(0, u64::saturating_add) as f64
                };
                let seen = sum(|counts| counts.next.saturating_sub(counts.omitted_next));
                let lost = sum(|counts| counts.lost.saturating_sub(counts.omitted_lost));
                set(Metric::Loss, Value::finite(lost / seen, "nothing arrived"));
                for metric in [Metric::IpFragCreates, Metric::PathMtu] {
                    set(metric, unknown("it"));
                }
                let retransmits: Option<u64> = self.theirs().map(|stream| stream.retransmits).sum();
                set(
                    Metric::Retransmits,
                    match retransmits {
                        Some(count) => {
                            Value::finite(count as f64 / sender.sent.of_trial() as f64, "nothing was sent")
                        }
                        None => unknown("retransmissions"),
                    },
                );
            }
        }
        made
    }

    /// The peer's word beside what was counted here.
    fn word(&self) -> Warning {
        let (theirs, counters) = (self.their_bytes(), &self.own.counters);
        let (did, own, counted) = match self.way {
            Way::Send => {
                let own = format!("this host sent {} bytes", self.own.sent.bytes);
                ("received", own, counters.get("interface.tx_bytes"))
            }
            Way::Receive => {
                let own = format!("this host received {} bytes", self.own.received.bytes);
                ("sent", own, counters.get("interface.rx_bytes"))
            }
        };
        Warning {
            code: "peer_word".to_owned(),
            text: format!(
                "the iperf3 server reports that it {did} {theirs} bytes; {own}, and its interface counted {counted} bytes with headers and other traffic"
            ),
            advice: match self.way {
                Way::Send => "the figures of the receiver are the server's word".to_owned(),
                Way::Receive => "the figures are those of this host".to_owned(),
            },
        }
    }
}
