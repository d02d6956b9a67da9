//! The rules of arrivals: no more arrives than was sent, whichever end says it. Copies that the network made are
//! counted apart, and are not without number.

use crate::validate::Rule;
use stacklab_model::{HostReport, Probe, Received, TrialSpec, add_up, count};

/// How often a network may copy a packet: even in a loop of routers, its hop limit ends before.
const MAX_COPIES: u64 = 255;

/// What both ends counted of one transfer, and of the answers of an echo.
pub(super) fn arrival_rules(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Vec<Rule> {
    let sent = &sender.sent;
    let received = &receiver.received;
    if spec.probe.probe == Probe::Connect {
        // Connections of the warm-up are not counted apart where they arrive.
        let opened = sent.of_trial().saturating_add(sent.refused);
        let text = format!(
            "the receiver accepted {}, the sender opened {opened}",
            count(received.measured, "connection")
        );
        return vec![(received.measured <= opened, text)];
    }
    // What the sender discarded may have arrived all the same.
    let messages = sent.of_window();
    let bytes = messages.saturating_mul(spec.message_bytes.into());
    let in_slices = add_up(receiver.slices.iter().map(|slice| slice.messages));
    let of_flows = add_up(receiver.flow_bytes.iter().copied());
    let mut rules = vec![
        more("messages received", received.measured, messages),
        more("messages received in slices", in_slices, messages),
        more("bytes received", received.all_bytes(), bytes),
        more("bytes received in flows", of_flows, bytes),
    ];
    rules.extend(copy_rules("receiver", received, sent.warmup, messages));
    if spec.probe.probe.echoes() {
        let answers = &sender.received;
        let reflected = received.measured.saturating_add(received.beyond_window);
        let answered = receiver.sent.warmup;
        rules.extend(copy_rules("sender", answers, answered, receiver.sent.measured));
        rules.extend([
            (
                answers.measured <= messages && answers.bytes <= bytes,
                format!("{} came to {}", count(answers.measured, "answer"), count(messages, "message")),
            ),
            (
                answers.measured <= reflected,
                format!(
                    "{} came, and the receiver reports that {} arrived there",
                    count(answers.measured, "answer"),
                    count(reflected, "message")
                ),
            ),
        ]);
    }
    rules
}

/// Copies of a message, and those that come too late to be known from copies, are copies of what was sent.
fn copy_rules(name: &str, received: &Received, warmup: u64, messages: u64) -> [Rule; 2] {
    let Received { duplicates, beyond_window, .. } = *received;
    let copies = duplicates.saturating_add(beyond_window);
    let most = messages.saturating_mul(MAX_COPIES);
    let most_warmup = warmup.saturating_mul(MAX_COPIES);
    [
        (copies <= most, format!("the {name} reports {copies} copies of {}", count(messages, "message"))),
        (
            received.warmup <= most_warmup,
            format!(
                "the {name} reports {} of the warm-up received, of {warmup}",
                count(received.warmup, "message")
            ),
        ),
    ]
}

fn more(what: &str, received: u64, sent: u64) -> Rule {
    (received <= sent, format!("the receiver reports {received} {what}; the sender sent {sent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, spec};
    use crate::validate::broken;
    use stacklab_model::{Family, Slice, Transport};

    /// The reasons of a trial of 1000 messages after 100 of a warm-up, all of which arrived, once changed.
    fn reasons(
        probe: Probe,
        transport: Transport,
        change: impl Fn(&mut HostReport, &mut HostReport),
    ) -> Vec<String> {
        let mut spec = spec(Family::Ipv6, transport);
        (spec.probe.probe, spec.message_bytes) = (probe, 100);
        let (mut sender, mut receiver) = host_reports(&spec);
        (sender.sent.warmup, sender.sent.measured, sender.sent.bytes) = (100, 1000, 100_000);
        (receiver.received.warmup, receiver.received.measured, receiver.received.bytes) =
            (100, 1000, 100_000);
        if probe.echoes() {
            (sender.received.measured, sender.received.bytes) = (1000, 100_000);
        }
        change(&mut sender, &mut receiver);
        broken(arrival_rules(&spec, &sender, &receiver))
    }

    #[test]
    fn more_received_than_sent_is_a_contradiction() {
        for transport in Transport::ALL.iter().copied() {
            let of =
                |change: &dyn Fn(&mut HostReport, &mut HostReport)| reasons(Probe::Stream, transport, change);
            assert_eq!(of(&|_, _| ()), [""; 0]);
            let said = of(&|_, receiver| receiver.received.measured = 1001);
            assert_eq!(said, ["the receiver reports 1001 messages received; the sender sent 1000"]);
            let said = of(&|_, receiver| receiver.received.bytes = 102_000);
            assert_eq!(said, ["the receiver reports 102000 bytes received; the sender sent 100000"]);
            assert_eq!(of(&|_, receiver| receiver.flow_bytes = vec![100_000, 1]).len(), 1);
            let slice = Slice { messages: 1001, ..Slice::default() };
            assert_eq!(of(&|_, receiver| receiver.slices = vec![slice]).len(), 1);
            // Some of what the sender gave up had arrived.
            assert_eq!(of(&|sender, _| sender.sent.discard(5000, 100)), [""; 0]);
        }
    }

    #[test]
    fn answers_are_no_more_than_messages_at_either_end() {
        for transport in Transport::ALL.iter().copied() {
            let of =
                |change: &dyn Fn(&mut HostReport, &mut HostReport)| reasons(Probe::Echo, transport, change);
            assert_eq!(of(&|_, _| ()), [""; 0]);
            let said = of(&|_, receiver| (receiver.received.measured, receiver.received.bytes) = (0, 0));
            assert!(said[0].contains("1000 answers came") && said[0].contains("0 messages"), "{said:?}");
            assert_eq!(of(&|sender, _| sender.received.bytes = 200_000).len(), 1);
        }
    }

    #[test]
    fn connections_are_no_more_than_were_opened() {
        // With the warm-up and the fixture's end markers.
        for (accepted, broken) in [(1100, 0), (2000, 1)] {
            let reasons = reasons(Probe::Connect, Transport::Tcp, move |_, receiver| {
                receiver.received.measured = accepted;
            });
            assert_eq!(reasons.len(), broken, "{reasons:?}");
        }
    }
}
