//! A test against a peer of another protocol: what the peer reports against what this host counted.

use super::{Rule, broken};
use stacklab_model::{Endpoint, Family, HostReport, Role, Transport, TrialSpec};
use stacklab_traffic::foreign::{Counted, ReceivedCounts, SentCounts};

/// What the test of a peer of another protocol breaks, by what both ends counted of each stream: `theirs` are the bytes
/// and datagrams that the peer reports, if it reports the stream.
pub fn peer(spec: &TrialSpec, own: &HostReport, streams: &[(&Counted, Option<[u64; 2]>)]) -> Vec<String> {
    let mut rules = family_rules(own, spec.family);
    for (stream, (counted, theirs)) in (1..).zip(streams) {
        let Some(theirs) = theirs else {
            rules.push((false, format!("the peer reports nothing about stream {stream}")));
            continue;
        };
        match counted {
            Counted::Sent(counts) => rules.extend(sent_rules(spec, stream, counts, *theirs)),
            Counted::Received(counts) => rules.extend(received_rules(spec, stream, counts, *theirs)),
        }
    }
    rules.push(interface_rule(own, streams));
    broken(rules)
}

fn family_rules(own: &HostReport, planned: Family) -> Vec<Rule> {
    let Endpoint { family, local, peer, .. } = &own.endpoint;
    let mut rules = Vec::new();
    for (what, found) in
        [("socket", *family), ("address", Family::of(local.ip())), ("peer", Family::of(peer.ip()))]
    {
        rules.push((found == planned, format!("this host's {what} is {found}, planned is {planned}")));
    }
    rules
}

fn sent_rules(spec: &TrialSpec, stream: u32, counts: &SentCounts, [bytes, packets]: [u64; 2]) -> [Rule; 5] {
    let messages = counts.omitted + counts.measured;
    let most = messages.saturating_mul(u64::from(spec.message_bytes));
    [
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
        end_rule(stream, "send", counts.failed.as_deref()),
    ]
}

fn received_rules(
    spec: &TrialSpec,
    stream: u32,
    counts: &ReceivedCounts,
    [bytes, packets]: [u64; 2],
) -> [Rule; 4] {
    let arrived = counts.bytes;
    let next = counts.next;
    let block = u64::from(spec.message_bytes);
    [
        (arrived > 0, format!("nothing arrived in stream {stream}")),
        // The last block may be under way when the peer counts; an omitted part ends there at another time.
        (
            spec.probe.warmup_ns > 0 || arrived <= bytes.saturating_add(block),
            format!("{arrived} bytes of stream {stream} arrived here; the peer reports {bytes} sent"),
        ),
        (
            spec.transport != Transport::Udp || next <= packets.saturating_add(1),
            format!("datagram {next} of stream {stream} arrived here; the peer reports {packets} sent"),
        ),
        end_rule(stream, "receive", counts.failed.as_deref()),
    ]
}

/// A stream is sent or received to its end.
fn end_rule(stream: u32, what: &str, failed: Option<&str>) -> Rule {
    let reason = failed.unwrap_or_default();
    (failed.is_none(), format!("stream {stream} could not {what} to the end: {reason}"))
}

/// The interface counts at least the payload that arrived. This host's queue may have dropped datagrams before they
/// reached the interface: then they did not arrive.
fn interface_rule(own: &HostReport, streams: &[(&Counted, Option<[u64; 2]>)]) -> Rule {
    let (counter, arrived) = match own.role {
        Role::Sender => {
            let theirs = streams.iter().filter_map(|(_, theirs)| Some((*theirs)?[0]));
            ("interface.tx_bytes", theirs.fold(0, u64::saturating_add))
        }
        Role::Receiver => ("interface.rx_bytes", own.received.bytes),
    };
    let counted = own.counters.get(counter);
    (
        counted >= arrived,
        format!("{arrived} bytes of payload arrived, and this host's interface counted {counted} bytes"),
    )
}
