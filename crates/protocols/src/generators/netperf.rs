//! netperf: lines of `KEY=VALUE`. The receiver's counts come to the sender's end over their control connection.

use crate::generators::{CommandLine, Figures, Output, Tool, Traffic, count, ip_version, number};
use stacklab_model::Transport;

const PORT: u16 = 12_865;
const STREAM: &str = "THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_SIZE,LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS,LOCAL_TRANSPORT_RETRANS";
const ROUND_TRIPS: &str = "REQUEST_SIZE,RESPONSE_SIZE,LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS,MEAN_LATENCY,P50_LATENCY,P99_LATENCY";

pub(super) const TOOL: Tool = Tool {
    version: || CommandLine::new("netperf").with("-V"),
    sender,
    receiver: |traffic| {
        let listen = traffic.listen;
        let version = ip_version(listen);
        // In the foreground, and without a new process for each test.
        CommandLine::new("netserver").with(format!("-D -f -{version} -L {listen} -p {PORT}"))
    },
    decoder: None,
    port: |_| (Transport::Tcp, PORT),
    data_port: 0,
    ends_itself: false,
    read,
};

fn sender(traffic: &Traffic) -> CommandLine {
    let Traffic { transport, destination, source, message_bytes, tuning, .. } = traffic;
    let family = ip_version(*destination);
    let test = match (transport, traffic.round_trips) {
        (Transport::Tcp, false) => "TCP_STREAM",
        (Transport::Udp, false) => "UDP_STREAM",
        (Transport::Tcp, true) => "TCP_RR",
        (Transport::Udp, true) => "UDP_RR",
    };
    let line = CommandLine::new("netperf")
        .with(format!("-H {destination},{family} -L {source},{family} -p {PORT} -t {test} -P 0"))
        .maybe("-l", traffic.seconds())
        .with("--");
    let line = if traffic.round_trips {
        line.with(format!("-r {message_bytes},{message_bytes} -k {ROUND_TRIPS}"))
    } else {
        // Without -R, it sends datagrams on no route at all.
        let line = line.with(format!("-m {message_bytes} -M {message_bytes} -k {STREAM}"));
        if *transport == Transport::Udp { line.with("-R 1") } else { line }
    };
    let line = if tuning.nodelay == Some(true) { line.with("-D") } else { line };
    line.maybe("-s", tuning.send_buffer).maybe("-S", tuning.receive_buffer)
}

fn read(traffic: &Traffic, output: &Output<'_>) -> Result<Figures, String> {
    let said = output.sender;
    let bytes = read_count(said, if traffic.round_trips { "REQUEST_SIZE" } else { "LOCAL_SEND_SIZE" })?;
    if bytes != u64::from(traffic.message_bytes) {
        return Err(format!("it sent {bytes} bytes per message, planned are {}", traffic.message_bytes));
    }
    let mut figures = Figures {
        sent_bytes: Some(read_count(said, "LOCAL_BYTES_SENT")?),
        received_bytes: Some(read_count(said, "REMOTE_BYTES_RECVD")?),
        ..Figures::default()
    };
    if traffic.transport == Transport::Udp || traffic.round_trips {
        figures.sent_messages = Some(read_count(said, "LOCAL_SEND_CALLS")?);
        figures.received_messages = Some(read_count(said, "REMOTE_RECV_CALLS")?);
    }
    if traffic.round_trips {
        let median_us = read_number(said, "P50_LATENCY")?;
        let mean_us = read_number(said, "MEAN_LATENCY")?;
        let high_us = read_number(said, "P99_LATENCY")?;
        figures.round_trip_ms = Some([median_us / 1e3, mean_us / 1e3, high_us / 1e3]);
        return Ok(figures);
    }
    if find_value(said, "THROUGHPUT_UNITS") != Some("10^6bits/s") {
        return Err("its throughput is not in 10^6bits/s".to_owned());
    }
    figures.bits_per_second = Some(read_number(said, "THROUGHPUT")? * 1e6);
    match (traffic.transport, figures.sent_messages, figures.received_messages) {
        (Transport::Udp, Some(sent @ 1..), Some(received)) => {
            figures.loss = Some(sent.saturating_sub(received) as f64 / sent as f64);
        }
        // -1 where the kernel does not say.
        (Transport::Tcp, ..) => {
            let again = find_value(said, "LOCAL_TRANSPORT_RETRANS");
            figures.retransmits = again.and_then(|again| again.parse().ok());
        }
        _ => {}
    }
    Ok(figures)
}

fn find_value<'a>(said: &'a str, key: &str) -> Option<&'a str> {
    said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

fn require_value<'a>(said: &'a str, key: &str) -> Result<&'a str, String> {
    find_value(said, key).ok_or_else(|| format!("it prints no {key}"))
}

fn read_count(said: &str, key: &str) -> Result<u64, String> {
    count(key, require_value(said, key)?)
}

fn read_number(said: &str, key: &str) -> Result<f64, String> {
    number(key, require_value(said, key)?)
}
