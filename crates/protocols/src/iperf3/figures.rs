//! Makes a run from a test with iperf3: its server's figures are its word, and are compared with what was counted here.

use crate::iperf3::StreamResult;
use crate::iperf3::client::ClientRun;
use stacklab_model::{
    Drops, Endpoint, HostReport, Metric, Role, RunRecord, RunStatus, Transport, Trial, TrialSpec, Value,
    Warning, add_up,
};
use stacklab_traffic::foreign::{Counted, ReceivedCounts, Way};
use stacklab_trial::results::{drops, standstill_of_stream, values};
use stacklab_trial::validate::{Limits, PeerCounts};
use stacklab_trial::{Path, validate};
use std::collections::BTreeMap;
use std::time::Duration;

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
        values: made.into(),
        drops: match host_reports.as_slice() {
            [sent, received, ..] => drops(&spec, sent, received),
            _ => Drops::default(),
        },
        host_reports,
        warnings: transfers
            .iter()
            .flat_map(|transfer| [Some(transfer.word()), transfer.standstill()])
            .flatten()
            .collect(),
        spec,
    }
}

fn unknown(what: &str) -> Value {
    Value::Missing(format!("iperf3 does not report {what}"))
}

/// The least of this host's measured part in which a peer counted: it begins when it has the news, and ends so.
const MIN_COUNTED: f64 = 0.5;

fn peer_counts(stream: &StreamResult) -> PeerCounts {
    let StreamResult { bytes, packets, omitted_packets, errors, omitted_errors, retransmits, .. } = *stream;
    let jitter_ns = stream.jitter_s * 1e9;
    let took_ns = (stream.seconds * 1e9) as u64;
    PeerCounts { bytes, packets, omitted_packets, errors, omitted_errors, jitter_ns, took_ns, retransmits }
}

struct Transfer<'a> {
    spec: &'a TrialSpec,
    outcome: &'a ClientRun,
    own: &'a HostReport,
    way: Way,
}

/// The longest pause of a stream within its measured part.
struct Pause {
    pause_ns: u64,
    window_ns: u64,
    messages: u64,
}

impl Transfer<'_> {
    /// The peer's results of these streams, each with what was counted here.
    fn pairs(&self) -> impl Iterator<Item = (Option<&StreamResult>, &Counted)> {
        let all = self.outcome.counted.iter().enumerate();
        all.filter(|(_, (way, _))| *way == self.way)
            .map(|(place, (_, counted))| (self.outcome.peer.of_place(place), counted))
    }

    /// How long the server took to receive the bytes that it counts. It omits by its own clock, from another moment
    /// than this host: then its bytes are those of its time, without the pause after the last of them.
    fn receiving_ns(&self) -> u64 {
        let seconds = self.theirs().map(|stream| stream.seconds).fold(0.0, f64::max);
        let counting_ns = (seconds * 1e9) as u64;
        if self.spec.probe.warmup_ns > 0 && counting_ns > self.outcome.pause_ns {
            counting_ns - self.outcome.pause_ns
        } else {
            self.outcome.window_ns
        }
    }

    /// Datagrams that this host sent after the part that the server omitted.
    fn datagrams_to_count(&self) -> u64 {
        let omitted = add_up(self.theirs().map(|stream| self.omitted_packets(stream)));
        (self.own.sent.warmup + self.own.sent.measured).saturating_sub(omitted)
    }

    /// Datagrams of a stream before the part that the server counts. iperf3 3.12 does not report them: then those that
    /// it has not counted the bytes of, and all losses are taken for those of the counted part.
    fn omitted_packets(&self, stream: &StreamResult) -> u64 {
        if stream.omitted_packets > 0 || self.spec.probe.warmup_ns == 0 {
            return stream.omitted_packets;
        }
        let seen = stream.packets.saturating_sub(stream.errors);
        seen.saturating_sub(stream.bytes / u64::from(self.spec.message_bytes).max(1))
    }

    fn theirs(&self) -> impl Iterator<Item = &StreamResult> {
        self.pairs().filter_map(|(theirs, _)| theirs)
    }

    fn list_received_counts(&self) -> impl Iterator<Item = &ReceivedCounts> {
        self.pairs().filter_map(|(_, counted)| match counted {
            Counted::Received(counts) => Some(counts),
            Counted::Sent(_) => None,
        })
    }

    fn contradictions(&self) -> Vec<String> {
        let limits = Limits::of_time(Duration::from_nanos(self.outcome.wall_ns));
        let streams: Vec<_> =
            self.pairs().map(|(theirs, counted)| (counted, theirs.map(peer_counts))).collect();
        let mut found = validate::peer(self.spec, &limits, self.own, &streams);
        // Where its time counts, it is that of the measured part: its omitted part ends when ours does, but for a way.
        for stream in self.theirs().filter(|stream| stream.seconds > 0.0 && self.spec.probe.warmup_ns > 0) {
            let window = self.outcome.window_ns as f64 / 1e9;
            if stream.seconds < MIN_COUNTED * window {
                let seconds = stream.seconds;
                found.push(format!("the peer counted for {seconds:.3} s, and this host for {window:.3} s"));
            }
        }
        found
    }

    /// Payload that the peer says it received or sent, bytes.
    fn their_bytes(&self) -> u64 {
        add_up(self.theirs().map(|stream| stream.bytes))
    }

    /// Messages of the measured part by the peer's word: for TCP, what would be.
    fn their_messages(&self) -> u64 {
        add_up(self.theirs().map(|stream| self.count_messages(stream)))
    }

    fn count_messages(&self, stream: &StreamResult) -> u64 {
        let measured = stream.packets.saturating_sub(self.omitted_packets(stream));
        match (self.spec.transport, self.way) {
            (Transport::Tcp, _) => stream.bytes / u64::from(self.spec.message_bytes).max(1),
            (Transport::Udp, Way::Send) => {
                let lost = stream.errors.saturating_sub(stream.omitted_errors);
                measured.saturating_sub(lost)
            }
            (Transport::Udp, Way::Receive) => measured,
        }
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
        let bytes = self.their_bytes();
        let messages = self.their_messages();
        match self.way {
            Way::Send => {
                let mut theirs = HostReport::new(Role::Receiver, endpoint);
                theirs.received.bytes = bytes;
                theirs.received.measured = messages;
                for stream in self.theirs() {
                    let omitted = self.omitted_packets(stream).saturating_sub(stream.omitted_errors);
                    theirs.received.warmup = theirs.received.warmup.saturating_add(omitted);
                }
                theirs.received.first_ns = own.sent.first_ns;
                theirs.received.last_ns = own.sent.first_ns + self.receiving_ns();
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
        let received = &receiver.received;
        let seconds = received.last_ns.saturating_sub(received.first_ns) as f64 / 1e9;
        let megabits = received.bytes as f64 * 8.0 / 1e6;
        let mut theirs = BTreeMap::new();
        theirs.insert(Metric::Throughput, Value::finite(megabits / seconds, "all arrived at one time"));
        let messages = match self.spec.transport {
            Transport::Udp => Value::finite(received.measured as f64 / seconds, "all arrived at one time"),
            Transport::Tcp => unknown("message boundaries: TCP has none"),
        };
        theirs.insert(Metric::MessageRate, messages);
        let jitters: Vec<f64> = match self.way {
            Way::Send => self.theirs().map(|stream| stream.jitter_s * 1e3).collect(),
            Way::Receive => self.list_received_counts().map(|counts| counts.jitter_ns / 1e6).collect(),
        };
        let jitter = jitters.iter().sum::<f64>() / jitters.len() as f64;
        let smoothed = format!("iperf3 reports only the smoothed jitter (RFC 3550): {jitter:.4} ms");
        theirs.insert(Metric::Jitter, Value::Missing(smoothed));
        for metric in [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Pdv] {
            theirs.insert(metric, unknown("delays"));
        }
        theirs.insert(Metric::JitterRfc3550, Value::finite(jitter, "there was no stream"));
        match self.way {
            Way::Send => self.add_values_of_sender(received.measured, &mut theirs),
            Way::Receive => self.add_values_of_receiver(sender.sent.of_trial(), &mut theirs),
        }
        theirs.retain(|metric, _| metric.applies_to(self.spec.transport));
        let mut made = values(self.spec, path, &sender, &receiver);
        made.extend(theirs);
        made
    }

    /// What is known only of what this host sends, and what is unknown of it.
    fn add_values_of_sender(&self, counted: u64, theirs: &mut BTreeMap<Metric, Value>) {
        for metric in [Metric::Duplicate, Metric::Reorder] {
            theirs.insert(metric, unknown("copies and reordered datagrams apart"));
        }
        for metric in [Metric::Fairness, Metric::IpReasmOks] {
            theirs.insert(metric, unknown("it"));
        }
        let sent = self.datagrams_to_count();
        let lost = sent.saturating_sub(counted) as f64;
        theirs.insert(Metric::Loss, Value::finite(lost / sent as f64, "nothing was sent"));
    }

    /// The same of what the server sends.
    fn add_values_of_receiver(&self, sent: u64, theirs: &mut BTreeMap<Metric, Value>) {
        let mut seen = 0_u64;
        let mut lost = 0_u64;
        for counts in self.list_received_counts() {
            seen = seen.saturating_add(counts.next.saturating_sub(counts.omitted_next));
            lost = lost.saturating_add(counts.lost.saturating_sub(counts.omitted_lost));
        }
        theirs.insert(Metric::Loss, Value::finite(lost as f64 / seen as f64, "nothing arrived"));
        for metric in [Metric::IpFragCreates, Metric::PathMtu] {
            theirs.insert(metric, unknown("it"));
        }
        let again: Option<u64> = self.theirs().map(|stream| stream.retransmits).sum();
        let retransmits = match again {
            Some(count) => Value::finite(count as f64 / sent as f64, "nothing was sent"),
            None => unknown("retransmissions"),
        };
        theirs.insert(Metric::Retransmits, retransmits);
    }

    /// The warning that nothing moved for long in all streams.
    fn standstill(&self) -> Option<Warning> {
        let pauses = self.pairs().map(|(_, counted)| self.find_longest_pause(counted));
        let Pause { pause_ns, window_ns, messages } = pauses.min_by_key(|pause| pause.pause_ns)?;
        standstill_of_stream(self.spec, pause_ns, window_ns, messages)
    }

    fn find_longest_pause(&self, counted: &Counted) -> Pause {
        match counted {
            Counted::Sent(counts) => Pause {
                pause_ns: counts.longest_pause_ns,
                window_ns: counts.last_ns.saturating_sub(counts.first_ns),
                messages: counts.measured,
            },
            Counted::Received(counts) => {
                let [begin_ns, end_ns] = [self.own.received.first_ns, self.own.received.last_ns];
                let at_begin_ns = counts.first_ns.saturating_sub(begin_ns);
                let at_end_ns = end_ns.saturating_sub(counts.last_ns);
                Pause {
                    pause_ns: counts.longest_pause_ns.max(at_begin_ns).max(at_end_ns),
                    window_ns: end_ns.saturating_sub(begin_ns),
                    messages: counts.messages,
                }
            }
        }
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
        let theirs = self.their_bytes();
        let counted = self.own.counters.get(counter);
        Warning {
            code: "peer_word".to_owned(),
            text: format!(
                "the iperf3 server reports that it {did} {theirs} bytes; this host {own_did} {own} bytes, and its interface counted {counted} bytes with headers and other traffic"
            ),
            advice: advice.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf3::streams::stream_spec;
    use crate::iperf3::{Parameters, Results};
    use stacklab_model::{Cell, Family, Length, Probe, ScopedAddr, SizeOf};
    use stacklab_traffic::foreign::SentCounts;
    use std::net::SocketAddr;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A second of 1000 messages of 1000 bytes after a second that this host omits, to a server that began to count
    /// 0.2 s earlier, and lost 12 datagrams of those that it counts.
    fn omitting_server(transport: Transport, omitted_packets: u64) -> RunRecord {
        let parameters = Parameters { bandwidth: 8_000_000, omit_s: 1, ..Parameters::new(transport, 1000) };
        let spec = stream_spec(&parameters, Family::Ipv4, Length::Time(SECOND_NS));
        let addresses: [SocketAddr; 2] =
            ["198.18.0.1:5000", "198.18.0.2:5201"].map(|address| address.parse().unwrap());
        let endpoint = Endpoint {
            family: Family::Ipv4,
            transport,
            local: addresses[0],
            peer: addresses[1],
            interface: "st0".to_owned(),
            interface_mtu: 1500,
            path_mtu: Some(1500),
            offloads: Default::default(),
            congestion_control: None,
            options: Default::default(),
        };
        let mut own = HostReport::new(Role::Sender, endpoint);
        (own.sent.warmup, own.sent.measured, own.sent.bytes) = (1000, 1000, 1_000_000);
        (own.sent.first_ns, own.sent.last_ns) = (SECOND_NS, 2 * SECOND_NS);
        own.counters.0.insert("interface.tx_bytes".to_owned(), 3_000_000);
        let received = if transport == Transport::Udp { 1200 - 12 } else { 1200 };
        let theirs = StreamResult {
            id: 1,
            bytes: received * 1000,
            errors: 12,
            packets: 2000,
            omitted_packets,
            seconds: 1.25,
            ..StreamResult::default()
        };
        let counts = SentCounts { omitted: 1000, measured: 1000, ..SentCounts::default() };
        let outcome = ClientRun {
            own: vec![own],
            counted: vec![(Way::Send, Counted::Sent(counts))],
            peer: Results { streams: vec![theirs], ..Results::default() },
            window_ns: SECOND_NS,
            pause_ns: SECOND_NS / 20,
            started_unix_ns: 0,
            wall_ns: 3 * SECOND_NS,
        };
        let cell = Cell::new(Family::Ipv4, transport, SizeOf::Write, 1000);
        let trial = Trial { block: 0, position: 0, cell, probe: Probe::Stream };
        let [from, to] = addresses.map(|address| ScopedAddr::from(address.ip()));
        run_of(&trial, spec, &Path::without_plan(from, to, 1500), &outcome)
    }

    fn figure(run: &RunRecord, metric: Metric) -> f64 {
        run.values[&metric].measured().unwrap()
    }

    #[test]
    fn a_servers_bytes_are_those_of_its_own_time() {
        let run = omitting_server(Transport::Tcp, 0);
        assert_eq!(run.status, RunStatus::Valid);
        // 1.2 MB in 1.25 s, of which the last 0.05 s were a pause: 8 Mbit/s, and not 9.6.
        assert!((figure(&run, Metric::Throughput) - 8.0).abs() < 1e-6, "{:?}", run.values);
    }

    #[test]
    fn loss_is_of_the_datagrams_that_the_server_counts() {
        // Reported, or not, as by iperf3 3.12.
        for omitted_packets in [800, 0] {
            let run = omitting_server(Transport::Udp, omitted_packets);
            assert!((figure(&run, Metric::Loss) - 0.01).abs() < 1e-9, "{:?}", run.values);
            assert!((figure(&run, Metric::MessageRate) - 990.0).abs() < 1e-6, "{:?}", run.values);
            assert_eq!(run.drops.network, 12);
        }
    }
}
