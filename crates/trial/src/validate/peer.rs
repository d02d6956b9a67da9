//! A peer of another protocol: what it reports of each stream against what this host counted, against the time that the
//! test took, and against itself.

use crate::validate::{Limits, Rule, broken};
use stacklab_model::{Endpoint, Family, HostReport, Role, Transport, TrialSpec, add_up, print_duration};
use stacklab_traffic::foreign::{Counted, ReceivedCounts, SentCounts};

/// Datagrams by which bytes and counts may differ: what is under way when the peer reads one and then the other.
const UNDER_WAY: f64 = 64.0;
/// The least and the most of the datagrams that seem to have arrived whose bytes a peer counts. Each that comes late
/// is one lost less, so their bytes are those of all at the least. Copies are counted too, if the network makes them,
/// and no network copies every second datagram.
const MIN_RECEIVED: f64 = 0.9;
const MAX_RECEIVED: f64 = 1.5;
/// The same of a sender, which may count a datagram before it leaves, and again when that fails.
const MIN_SENT: f64 = 0.5;
/// The shortest time between two segments that are sent again, nanoseconds: the least one at 40 Gbit/s.
const MIN_SEGMENT_NS: u64 = 10;

/// What a peer reports of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PeerCounts {
    /// Sent or received, without the omitted part.
    pub bytes: u64,
    /// Datagrams: the highest number, with the omitted part, and at the end of that.
    pub packets: u64,
    /// 0 also where the peer does not report it.
    pub omitted_packets: u64,
    /// Those that it takes for lost, with the omitted part, and of that.
    pub errors: u64,
    /// 0 also where the peer does not report it.
    pub omitted_errors: u64,
    /// Nanoseconds.
    pub jitter_ns: f64,
    /// Nanoseconds in which it counted; 0 if it does not say.
    pub took_ns: u64,
    /// Segments that it sent again, if it sent and knows.
    pub retransmits: Option<u64>,
}

/// What the test of a peer breaks, by what both ends counted of each stream, if the peer reports it.
pub fn peer(
    spec: &TrialSpec,
    limits: &Limits,
    own: &HostReport,
    streams: &[(&Counted, Option<PeerCounts>)],
) -> Vec<String> {
    let mut rules = family_rules(spec, own);
    for (stream, (counted, theirs)) in (1..).zip(streams) {
        let Some(theirs) = theirs else {
            rules.push((false, format!("the peer reports nothing about stream {stream}")));
            continue;
        };
        rules.extend(time_rules(limits, stream, theirs));
        match counted {
            Counted::Sent(counts) => rules.extend(sent_rules(spec, stream, counts, theirs)),
            Counted::Received(counts) => rules.extend(received_rules(spec, stream, counts, theirs)),
        }
        if spec.transport == Transport::Udp {
            rules.extend(datagram_rules(spec, stream, matches!(counted, Counted::Sent(_)), theirs));
        }
    }
    // This host's queue may have dropped datagrams before they reached the interface: then they did not arrive.
    let bytes = add_up(streams.iter().filter_map(|(_, theirs)| Some(theirs.as_ref()?.bytes)));
    let (counter, arrived) = match own.role {
        Role::Sender => ("interface.tx_bytes", bytes),
        Role::Receiver => ("interface.rx_bytes", own.received.bytes),
    };
    let counted = own.counters.get(counter);
    rules.push((
        counted >= arrived,
        format!("{arrived} bytes of payload arrived, and this host's interface counted {counted} bytes"),
    ));
    broken(rules)
}

fn family_rules(spec: &TrialSpec, own: &HostReport) -> Vec<Rule> {
    let Endpoint { family, local, peer, .. } = &own.endpoint;
    let planned = spec.family;
    let families =
        [("socket", *family), ("address", Family::of(local.ip())), ("peer", Family::of(peer.ip()))];
    let mut rules = Vec::new();
    for (what, found) in families {
        rules.push((found == planned, format!("this host's {what} is {found}, planned is {planned}")));
    }
    rules
}

/// Nothing takes longer than the test, and no more can happen in it.
fn time_rules(limits: &Limits, stream: usize, theirs: &PeerCounts) -> [Rule; 3] {
    let longest = print_duration(limits.longest_ns);
    let took = print_duration(theirs.took_ns);
    let jitter = print_duration(theirs.jitter_ns as u64);
    let again = theirs.retransmits.unwrap_or(0);
    [
        (
            theirs.took_ns <= limits.longest_ns,
            format!(
                "the peer counted in stream {stream} for {took}, and the test took no more than {longest}"
            ),
        ),
        (
            theirs.jitter_ns <= limits.longest_ns as f64,
            format!(
                "the peer reports a jitter of {jitter} in stream {stream}, and the test took no more than {longest}"
            ),
        ),
        (
            again <= limits.longest_ns / MIN_SEGMENT_NS,
            format!("the peer reports {again} segments of stream {stream} sent again within {longest}"),
        ),
    ]
}

fn sent_rules(spec: &TrialSpec, stream: usize, counts: &SentCounts, theirs: &PeerCounts) -> Vec<Rule> {
    let PeerCounts { bytes, packets, .. } = *theirs;
    let messages = counts.omitted + counts.measured;
    let most = messages.saturating_mul(spec.message_bytes.into());
    let reason = counts.failed.as_deref().unwrap_or_default();
    vec![
        (counts.measured > 0, format!("nothing was sent in stream {stream}")),
        (bytes > 0, format!("the peer reports that nothing of stream {stream} arrived")),
        (
            bytes <= most,
            format!("the peer reports {bytes} bytes received of stream {stream}; this host sent {most}"),
        ),
        (
            spec.transport != Transport::Udp || packets <= messages,
            format!("the peer saw datagram {packets} of stream {stream}; this host sent {messages}"),
        ),
        (counts.failed.is_none(), format!("stream {stream} could not send to the end: {reason}")),
    ]
}

fn received_rules(
    spec: &TrialSpec,
    stream: usize,
    counts: &ReceivedCounts,
    theirs: &PeerCounts,
) -> Vec<Rule> {
    let PeerCounts { bytes, packets, .. } = *theirs;
    let arrived = counts.bytes;
    let next = counts.next;
    let reason = counts.failed.as_deref().unwrap_or_default();
    vec![
        (arrived > 0, format!("nothing arrived in stream {stream}")),
        // The last block may be under way when the peer counts; an omitted part ends there at another time.
        (
            spec.probe.warmup_ns > 0 || arrived <= bytes.saturating_add(spec.message_bytes.into()),
            format!("{arrived} bytes of stream {stream} arrived here; the peer reports {bytes} sent"),
        ),
        (
            spec.transport != Transport::Udp || next <= packets.saturating_add(1),
            format!("datagram {next} of stream {stream} arrived here; the peer reports {packets} sent"),
        ),
        (counts.failed.is_none(), format!("stream {stream} could not receive to the end: {reason}")),
    ]
}

/// Of a peer's datagrams no more are lost than there are, and their bytes are theirs times the length of each.
fn datagram_rules(spec: &TrialSpec, stream: usize, is_receiver: bool, theirs: &PeerCounts) -> Vec<Rule> {
    let PeerCounts { bytes, packets, omitted_packets, errors, omitted_errors, .. } = *theirs;
    let mut rules = vec![
        (
            errors <= packets,
            format!("the peer reports {errors} datagrams of stream {stream} lost, of {packets}"),
        ),
        (
            omitted_packets <= packets && omitted_errors <= packets,
            format!(
                "the peer reports that it omitted {omitted_packets} datagrams of stream {stream}, {omitted_errors} of them lost, and saw {packets}"
            ),
        ),
    ];
    // iperf3 3.12 does not report how many it omitted.
    if spec.probe.warmup_ns > 0 && omitted_packets == 0 {
        return rules;
    }
    // What comes late was not lost, also of the omitted part.
    let lost = if is_receiver { errors.saturating_sub(omitted_errors) } else { 0 };
    let seen = packets.saturating_sub(omitted_packets).saturating_sub(lost) as f64;
    let each = f64::from(spec.message_bytes.max(1));
    let found = bytes as f64 / each;
    let least = if is_receiver { MIN_RECEIVED } else { MIN_SENT };
    rules.push((
        (least * seen - UNDER_WAY..=MAX_RECEIVED * seen + UNDER_WAY).contains(&found),
        format!("the peer reports {bytes} bytes of stream {stream}, in {seen} datagrams of {each} bytes"),
    ));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, spec};
    use std::time::Duration;

    /// A test of a second with 1000 datagrams or blocks of 128 bytes, and what a peer reports of it.
    fn reasons(transport: Transport, is_sent: bool, change: fn(&mut PeerCounts)) -> Vec<String> {
        let spec = spec(Family::Ipv6, transport);
        let (sender, receiver) = host_reports(&spec);
        let mut own = if is_sent { sender } else { receiver };
        for way in ["tx", "rx"] {
            own.counters.0.insert(format!("interface.{way}_bytes"), 300_000);
        }
        let counted = if is_sent {
            Counted::Sent(SentCounts { measured: 1000, ..SentCounts::default() })
        } else {
            Counted::Received(ReceivedCounts { bytes: 128_000, next: 1000, ..ReceivedCounts::default() })
        };
        let mut theirs =
            PeerCounts { bytes: 128_000, packets: 1000, took_ns: 1_000_000_000, ..PeerCounts::default() };
        change(&mut theirs);
        peer(&spec, &Limits::of_time(Duration::from_secs(1)), &own, &[(&counted, Some(theirs))])
    }

    /// Whether this host sends, what the reason says, and what the peer reports instead.
    type Lie = (bool, &'static str, fn(&mut PeerCounts));

    #[test]
    fn counts_of_a_peer_belong_together() {
        let lies: [Lie; 11] = [
            (true, "1000000000 datagrams of stream 1 lost, of 1000", |t| t.errors = 1_000_000_000),
            (true, "128000 bytes of stream 1, in 500 datagrams of 128", |t| t.packets /= 2),
            (true, "64000 bytes of stream 1, in 1000 datagrams of 128", |t| t.bytes /= 2),
            (true, "it omitted 1000000 datagrams of stream 1", |t| t.omitted_packets = 1_000_000),
            (true, "5000 of them lost, and saw 1000", |t| t.omitted_errors = 5000),
            (true, "a jitter of 1666666 min 40 s in stream 1", |t| t.jitter_ns = 1e17),
            (true, "for 9 s, and the test took no more than 1.2 s", |t| t.took_ns = 9_000_000_000),
            (true, "the peer saw datagram 1001 of stream 1", |t| t.packets = 1001),
            (false, "in 1000000 datagrams of 128", |t| t.packets *= 1000),
            (false, "128000000 bytes of stream 1, in 1000 datagrams", |t| t.bytes *= 1000),
            (false, "1000000000000 segments of stream 1 sent again", |t| {
                t.retransmits = Some(1_000_000_000_000);
            }),
        ];
        for (is_sent, text, change) in lies {
            assert_eq!(reasons(Transport::Udp, is_sent, |_| ()), [""; 0]);
            let found = reasons(Transport::Udp, is_sent, change);
            assert!(found.iter().any(|reason| reason.contains(text)), "{text}: {found:?}");
        }
    }

    #[test]
    fn honest_peers_contradict_nothing() {
        let honest: [fn(&mut PeerCounts); 5] = [
            // Half was lost, and then a tenth of it came late.
            |t| (t.errors, t.bytes) = (450, 128 * 550),
            // The network made copies, each of which takes a lost one back.
            |t| (t.errors, t.bytes) = (0, 128 * 1000),
            // The end of the stream was lost.
            |t| (t.packets, t.bytes) = (100, 128 * 100),
            |t| (t.omitted_packets, t.bytes) = (800, 128 * 200),
            |t| (t.jitter_ns, t.took_ns) = (1e9, 0),
        ];
        for change in honest {
            assert_eq!(reasons(Transport::Udp, true, change), [""; 0]);
        }
        assert_eq!(reasons(Transport::Tcp, true, |t| (t.packets, t.bytes) = (0, 10_000)), [""; 0]);
        assert_eq!(reasons(Transport::Tcp, false, |t| t.retransmits = Some(90_000)), [""; 0]);
    }
}
