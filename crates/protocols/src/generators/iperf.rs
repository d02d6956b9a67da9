//! iperf 2: a line of text for each end. Bytes are exact by `-f b`.

use crate::generators::{CommandLine, Figures, Output, Tool, Traffic, count, number};
use stacklab_model::{Length, Transport};
use std::net::IpAddr;

const PORT: u16 = 5001;
/// Datagrams per second that are asked for where it is to send as fast as it goes: it has no word for that.
const FLOOD: u64 = 10_000_000;
/// The longest datagram that a receiver's end takes by default, bytes.
const DATAGRAM: u32 = 1470;

pub(super) const TOOL: Tool = Tool {
    version: || CommandLine::new("iperf").with("-v"),
    sender,
    receiver,
    decoder: None,
    port: |traffic| (traffic.transport, PORT),
    data_port: PORT,
    ends_itself: false,
    read,
};

/// The arguments of both ends, but for the address that is theirs.
fn common(traffic: &Traffic, own: IpAddr) -> CommandLine {
    let line = CommandLine::new("iperf").with(format!("-p {PORT} -e -f b"));
    let line = if own.is_ipv6() { line.with("-V") } else { line };
    let line = if traffic.transport == Transport::Udp { line.with("-u") } else { line };
    line.maybe("-M", traffic.tuning.mss)
}

fn sender(traffic: &Traffic) -> CommandLine {
    let Traffic { destination, source, message_bytes, tuning, .. } = traffic;
    let line = common(traffic, *source).with(format!("-c {destination} -B {source} -l {message_bytes}"));
    let line = match traffic.length {
        Length::Packets(messages) => {
            line.with(format!("-n {}", messages.saturating_mul(u64::from(*message_bytes))))
        }
        Length::Time(ns) => line.with(format!("-t {}", ns as f64 / 1e9)),
    };
    let line = match traffic.transport {
        Transport::Udp => {
            line.with(format!("-b {}pps", traffic.per_second.map_or(FLOOD, |rate| rate.round() as u64)))
        }
        Transport::Tcp => line.maybe("-b", traffic.bits_per_second()),
    };
    let line = if tuning.nodelay == Some(true) { line.with("-N") } else { line };
    line.maybe("-w", tuning.send_buffer)
        .maybe("-Z", tuning.congestion_control.as_deref())
        .maybe("-S", tuning.dscp.map(|dscp| u32::from(dscp) << 2))
}

fn receiver(traffic: &Traffic) -> CommandLine {
    let line = common(traffic, traffic.listen).with(format!("-s -B {}", traffic.listen));
    let line = match traffic.transport {
        Transport::Udp => line.with(format!("-l {}", traffic.message_bytes.max(DATAGRAM))),
        Transport::Tcp => line,
    };
    line.maybe("-w", traffic.tuning.receive_buffer)
}

/// The words of a line of figures: `[  1] 0.0000-0.5037 sec  60651000 Bytes  963276197 bits/sec ..`.
fn words<'a>(said: &'a str, whose: &str) -> Result<Vec<&'a str>, String> {
    // The sender's end repeats what the receiver's end says, below its own figures.
    let line = said.lines().find(|line| has_figures(line));
    Ok(line.ok_or_else(|| format!("the {whose}'s end prints no figures"))?.split_whitespace().collect())
}

fn has_figures(line: &str) -> bool {
    line.contains(" sec ") && line.contains(" Bytes ") && line.contains(" bits/sec")
}

fn before<'a>(words: &[&'a str], unit: &str) -> Result<&'a str, String> {
    let place = words.iter().position(|word| *word == unit).filter(|place| *place > 0);
    place.map(|place| words[place - 1]).ok_or_else(|| format!("it prints no {unit}"))
}

fn read(traffic: &Traffic, output: &Output<'_>) -> Result<Figures, String> {
    let sent = words(output.sender, "sender")?;
    let received = words(output.receiver, "receiver")?;
    let received_bytes = count("bytes received", before(&received, "Bytes")?)?;
    let mut figures = Figures {
        sent_bytes: Some(count("bytes sent", before(&sent, "Bytes")?)?),
        received_bytes: Some(received_bytes),
        bits_per_second: Some(number("bits per second", before(&received, "bits/sec")?)?),
        ..Figures::default()
    };
    match traffic.transport {
        Transport::Tcp => {
            // Write/Err, then Rtry.
            let again = sent.get(skip_rate(&sent) + 1).ok_or("the sender's end prints no retransmissions")?;
            figures.retransmits = Some(count("retransmissions", again)?);
        }
        Transport::Udp => {
            let rest = &received[skip_rate(&received)..];
            figures.jitter_rfc3550_ms = Some(number("jitter", before(rest, "ms")?)?);
            let (lost, total) = rest
                .get(2)
                .and_then(|word| word.split_once('/'))
                .ok_or("the receiver's end prints no losses")?;
            let lost = count("datagrams lost", lost)?;
            let total = count("datagrams", total)?;
            figures.sent_messages = Some(total);
            figures.received_messages = Some(total.saturating_sub(lost));
            figures.loss = (total > 0).then(|| lost as f64 / total as f64);
            let delays = rest.get(4).and_then(|word| word.split('/').next());
            figures.delay_mean_ms = delays.map(|mean| number("latency", mean)).transpose()?;
        }
    }
    Ok(figures)
}

/// The place behind the rate; 0 without one.
fn skip_rate(words: &[&str]) -> usize {
    words.iter().position(|word| *word == "bits/sec").map_or(0, |place| place + 1)
}
