//! iperf3: one JSON document. The receiver's counts come to the sender's end over their control connection.

use crate::generators::{CommandLine, Figures, Output, Tool, Traffic, ip_version};
use serde_json::Value;
use stacklab_model::{Length, Transport};

const PORT: u16 = 5201;

pub(super) const TOOL: Tool = Tool {
    version: || CommandLine::new("iperf3").with("--version"),
    sender,
    receiver: |traffic| {
        let listen = traffic.listen;
        let version = ip_version(listen);
        CommandLine::new("iperf3").with(format!("-s -1 -{version} -B {listen} -p {PORT} -J"))
    },
    decoder: None,
    port: |_| (Transport::Tcp, PORT),
    data_port: PORT,
    ends_itself: true,
    read,
};

fn sender(traffic: &Traffic) -> CommandLine {
    let Traffic { destination, source, message_bytes, flows, tuning, .. } = traffic;
    let line = CommandLine::new("iperf3").with(format!(
        "-c {destination} -{} -B {source} -p {PORT} -J -i 0 -l {message_bytes} -P {flows}",
        ip_version(*destination)
    ));
    let line = match traffic.length {
        Length::Packets(messages) => line.with(format!("-k {messages}")),
        Length::Time(_) => line.maybe("-t", traffic.seconds()),
    };
    // The rate is per stream; for UDP the default is 1 Mbit/s.
    let rate = traffic.bits_per_second().map(|bits| bits / u64::from((*flows).max(1)));
    let line = match traffic.transport {
        Transport::Udp => line.with(format!("-u -b {}", rate.unwrap_or(0))),
        Transport::Tcp => line.maybe("-b", rate),
    };
    let line = if tuning.nodelay == Some(true) { line.with("-N") } else { line };
    line.maybe("-M", tuning.mss)
        .maybe("-C", tuning.congestion_control.as_deref())
        .maybe("-S", tuning.dscp.map(|dscp| u32::from(dscp) << 2))
}

fn read(traffic: &Traffic, output: &Output<'_>) -> Result<Figures, String> {
    let said: Value = serde_json::from_str(output.sender)
        .map_err(|error| format!("the output of the sender's end is not JSON: {error}"))?;
    if let Some(error) = said["error"].as_str() {
        return Err(format!("it says: {error}"));
    }
    let block = &said["start"]["test_start"]["blksize"];
    if block.as_u64() != Some(u64::from(traffic.message_bytes)) {
        return Err(format!("it sent {block} bytes per message, planned are {}", traffic.message_bytes));
    }
    let sent = &said["end"]["sum_sent"];
    let received = &said["end"]["sum_received"];
    let received_bytes = received["bytes"].as_u64().ok_or("it reports no received bytes")?;
    let mut figures = Figures {
        sent_bytes: sent["bytes"].as_u64(),
        received_bytes: Some(received_bytes),
        bits_per_second: read_figure(&received["bits_per_second"]),
        ..Figures::default()
    };
    match traffic.transport {
        Transport::Tcp => figures.retransmits = sent["retransmits"].as_u64(),
        Transport::Udp => {
            figures.sent_messages = sent["packets"].as_u64();
            figures.received_messages = Some(received_bytes / u64::from(traffic.message_bytes.max(1)));
            if received["lost_packets"].is_u64() {
                figures.loss = read_figure(&received["lost_percent"]).map(|per_cent| per_cent / 100.0);
            }
            figures.jitter_rfc3550_ms = read_figure(&received["jitter_ms"]);
        }
    }
    Ok(figures)
}

fn read_figure(figure: &Value) -> Option<f64> {
    figure.as_f64().filter(|figure| (0.0..=1e18).contains(figure))
}
