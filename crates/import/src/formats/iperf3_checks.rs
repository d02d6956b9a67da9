//! Whether a document of iperf3 can be read: its counts are numbers, and agree with each other.

use super::iperf3_ways::{DirectionCounts, or_0};
use crate::json::Json;

/// How much more may have arrived than was sent, for text has three digits.
const ROUNDED_SHARE: f64 = 0.02;

/// A count of a document's end that is none: it is missing, a text, or below 0. `None` if all can be read.
pub(super) fn find_unreadable(end: &Json) -> Option<String> {
    const OF_STREAM: [&str; 3] = ["bytes", "start", "end"];
    const SUMS: [&str; 4] =
        ["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"];
    for stream in end["streams"].items() {
        for name in ["sender", "receiver"] {
            let Some(counts) = stream.get(name) else { continue };
            if let Some(field) = OF_STREAM.iter().find(|field| counts.count(field).is_none()) {
                return Some(describe_unreadable(name, field));
            }
        }
        let datagrams = &stream["udp"];
        let has_packets = datagrams.get("packets").is_some();
        if has_packets && datagrams.count("packets").is_none() {
            return Some(describe_unreadable("udp", "packets"));
        }
        // Duplicates make a count of losses negative.
        if has_packets && datagrams.number("lost_packets").is_none() {
            return Some(
                "no number in `lost_packets` of its `udp`: the file was changed, or is damaged".to_owned(),
            );
        }
    }
    for name in SUMS {
        if end.get(name).is_some_and(|sum| sum.count("bytes").is_none()) {
            return Some(describe_unreadable(name, "bytes"));
        }
    }
    None
}

fn describe_unreadable(name: &str, field: &str) -> String {
    format!("no number that is 0 or more in `{field}` of its `{name}`: the file was changed, or is damaged")
}

/// What a document says of a direction that cannot all be true; `None` if nothing does.
pub(super) fn find_contradiction(document: &Json, way: &DirectionCounts, is_server: bool) -> Option<String> {
    let asked = &document["start"]["test_start"];
    let has = way.streams;
    let named = asked.count("num_streams").filter(|named| *named != f64::from(has));
    if let Some(named) = named {
        return Some(format!("the file names {named} streams, and has results of {has}"));
    }
    for (name, count) in [("sender", way.senders), ("receiver", way.receivers)] {
        if count > 0 && count < has {
            return Some(format!("{count} of {has} streams have counts of the {name}"));
        }
    }
    // A server does not know what was sent to it. Both ends leave out the begin (-O) by their own clocks, so that what
    // was under way then counts at the receiver only.
    if is_server || asked.is_set("omit") {
        return None;
    }
    let end = &document["end"];
    let counts = [
        [way.sent, way.received],
        // Of UDP, streams have no such counts.
        ["sum_sent", "sum_received"].map(|name| or_0(&end[name], "bytes")),
    ];
    let [sent, received] = counts
        .into_iter()
        .find(|[sent, received]| *sent > 0.0 && *received > sent * (1.0 + ROUNDED_SHARE))?;
    Some(format!("the file says that {received} bytes arrived of {sent} that were sent"))
}
