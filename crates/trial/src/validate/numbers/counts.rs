//! Rules of counts: messages, bytes, flows, rows and slices are different views of the same messages.

use super::Host;
use crate::validate::Rule;
use stacklab_model::{HostReport, Length, Probe, Role, add_up, count};

/// Bytes that a flow's first receives return at one time: a socket's buffer, since in virtual time all that is in it
/// may be read at once. Agents set no larger one.
const MAX_BUFFER: u64 = 16 << 20;
/// Datagrams of one receive at the most.
const MAX_AT_ONCE: u64 = 64;
/// End markers of a flow: no transport has more.
const MAX_MARKERS: u64 = 8;

pub(super) fn count_rules(host: &Host<'_>) -> Vec<Rule> {
    let mut rules = sent_rules(host);
    rules.extend(received_rules(host));
    rules.extend(row_rules(host));
    rules.extend(slice_rules(host));
    if host.spec.probe.probe != Probe::Connect {
        rules.extend(byte_rules(host));
    }
    rules
}

fn sent_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { sent, received, .. } = host.report;
    let name = host.role;
    let messages = sent.of_window();
    let mut rules = Vec::new();
    if name == Role::Receiver {
        // A reflector counts a message when it has answered it, both in one step. Others send nothing.
        let answered = [sent.warmup, sent.measured];
        let is_reflector = host.spec.probe.probe.echoes();
        let arrived = if is_reflector { [received.warmup, received.measured] } else { [0, 0] };
        rules.push((
            answered == arrived,
            format!(
                "the {name} reports that it answered {} messages of the warm-up and {} measured ones, of {} and {}",
                answered[0], answered[1], arrived[0], arrived[1]
            ),
        ));
        return rules;
    }
    let most = MAX_MARKERS.saturating_mul(host.spec.flows.into());
    rules.push((
        sent.markers <= most,
        format!("the {name} reports {}: {most} are possible", count(sent.markers, "end marker")),
    ));
    // A sender counts towards the length what the kernel took, whether it is discarded afterwards or not.
    if let Length::Packets(planned) = host.spec.probe.length {
        rules.push((
            messages <= planned,
            format!("the {name} reports {} sent, planned are {planned}", count(messages, "message")),
        ));
    }
    rules
}

fn received_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { received, flow_bytes, .. } = host.report;
    let name = host.role;
    let bytes = received.all_bytes();
    let messages = count(received.measured, "message");
    let at_once = MAX_AT_ONCE.saturating_mul(host.spec.message_bytes.into()).max(MAX_BUFFER);
    let most_at_first = at_once.saturating_mul(host.spec.flows.into()).min(bytes);
    // A reordered message is the first copy of one, and counted as received.
    let mut rules = vec![
        (
            received.reordered <= received.measured,
            format!("the {name} reports {} reordered, and {messages} received", received.reordered),
        ),
        (
            received.bytes_at_first <= most_at_first,
            format!(
                "the {name} reports {} bytes at its first receive, of {bytes} in all: {most_at_first} are possible",
                received.bytes_at_first
            ),
        ),
    ];
    if !flow_bytes.is_empty() {
        let of_flows = add_up(flow_bytes.iter().copied());
        rules.push((
            of_flows == bytes,
            format!("the {name} reports {of_flows} bytes in its flows, and {bytes} bytes in all"),
        ));
        rules.push((
            flow_bytes.len() == host.spec.flows as usize,
            format!("the {name} reports {} flows, planned are {}", flow_bytes.len(), host.spec.flows),
        ));
    }
    rules
}

/// Messages count when they are whole, so their bytes are theirs times the length of each. Connections have no bytes.
fn byte_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { sent, received, .. } = host.report;
    let name = host.role;
    let each = u64::from(host.spec.message_bytes);
    let whole = received.measured.saturating_mul(each);
    // What a sender discards at the end is bytes, and the messages in which they are: the first of them may be sent in
    // part.
    let least = sent.measured.saturating_mul(each);
    let most = sent.of_window().saturating_mul(each);
    // A message that was cut is the last of its flow.
    let most_cut = u64::from(host.spec.flows).saturating_mul(each);
    vec![
        (
            received.bytes == whole,
            format!(
                "the {name} reports {} bytes received in {} of {each} bytes",
                received.bytes,
                count(received.measured, "message")
            ),
        ),
        (
            (least..=most).contains(&sent.bytes),
            format!(
                "the {name} reports {} bytes sent in {} of {each} bytes",
                sent.bytes,
                count(sent.measured, "message")
            ),
        ),
        (
            received.cut_bytes <= most_cut,
            format!("the {name} reports {} bytes of messages that were cut", received.cut_bytes),
        ),
    ]
}

/// Each arrival is counted in its row when it is counted at all.
fn row_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { received, series, .. } = host.report;
    if series.is_empty() {
        return Vec::new();
    }
    let name = host.role;
    let bytes = received.all_bytes();
    let row_messages = add_up(series.iter().map(|row| row.messages));
    let row_bytes = add_up(series.iter().map(|row| row.bytes));
    vec![
        (
            row_messages == received.measured,
            format!(
                "the {name} reports {row_messages} messages in its intervals, and {} in all",
                received.measured
            ),
        ),
        (
            row_bytes == bytes,
            format!("the {name} reports {row_bytes} bytes in its intervals, and {bytes} in all"),
        ),
    ]
}

/// Slices have no more messages than the trial: very late ones are in none.
fn slice_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { sent, received, slices, .. } = host.report;
    let name = host.role;
    let in_slices = add_up(slices.iter().map(|slice| slice.messages));
    let most = match name {
        Role::Sender => sent.of_window(),
        Role::Receiver => received.measured,
    };
    let mut rules = vec![(
        in_slices <= most,
        format!("the {name} reports {} in its slices, and {most} in all", count(in_slices, "message")),
    )];
    if let Some(slice) = slices.iter().find(|slice| slice.at_first > slice.messages) {
        rules.push((
            false,
            format!(
                "the {name} reports {} at the first receive of a slice of {}",
                count(slice.at_first, "message"),
                slice.messages
            ),
        ));
    }
    rules
}
