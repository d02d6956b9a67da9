//! D-ITG: the receiver's end logs every packet, and ITGDec reads its log. The sender's end logs nothing, and so tells
//! nothing of what it sent.

use crate::generators::{CommandLine, Figures, Output, Tool, Traffic, count, number};
use stacklab_model::{Length, Transport};

const SIGNALLING_PORT: u16 = 9000;
const DATA_PORT: u16 = 8999;
/// Messages per second that are asked for where it is to send as fast as it goes: it has no word for that.
const FLOOD: u64 = 1_000_000;
const LOG: &str = "received.log";

pub(super) const TOOL: Tool = Tool {
    version: || CommandLine::new("ITGSend").with("-h"),
    sender,
    receiver: |traffic| {
        CommandLine::new("ITGRecv").with(format!("-a {} -Sp {SIGNALLING_PORT} -l {LOG}", traffic.listen))
    },
    decoder: Some(|| CommandLine::new("ITGDec").with(LOG)),
    port: |_| (Transport::Tcp, SIGNALLING_PORT),
    data_port: DATA_PORT,
    ends_itself: false,
    read,
};

fn sender(traffic: &Traffic) -> CommandLine {
    let Traffic { destination, message_bytes, tuning, .. } = traffic;
    let transport = match traffic.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    };
    let rate = traffic.per_second.map_or(FLOOD, |rate| rate.round() as u64);
    // Not -sa: with a source address it sends nothing, and says that all went well.
    let line = CommandLine::new("ITGSend")
        .with(format!("-a {destination} -rp {DATA_PORT} -T {transport} -c {message_bytes} -C {rate}"));
    let line = match traffic.length {
        Length::Packets(messages) => line.with(format!("-z {messages}")),
        Length::Time(ns) => line.with(format!("-t {}", ns / 1_000_000)),
    };
    line.maybe("-b", tuning.dscp.map(|dscp| u32::from(dscp) << 2))
}

fn read(traffic: &Traffic, output: &Output<'_>) -> Result<Figures, String> {
    let (_, total) = output.decoded.split_once("TOTAL RESULTS").ok_or("ITGDec prints no figures")?;
    let messages = read_count(total, "Total packets")?;
    let bytes = read_count(total, "Bytes received")?;
    if messages == 0 {
        return Err("its log has no packet".to_owned());
    }
    let each = bytes as f64 / messages as f64;
    if (each - f64::from(traffic.message_bytes)).abs() > 0.5 {
        return Err(format!("it sent {each} bytes per message, planned are {}", traffic.message_bytes));
    }
    let lost = read_count(total, "Packets dropped")?;
    Ok(Figures {
        received_bytes: Some(bytes),
        received_messages: Some(messages),
        bits_per_second: Some(read_number(total, "Average bitrate")? * 1e3),
        loss: (traffic.transport == Transport::Udp).then(|| lost as f64 / (lost + messages) as f64),
        jitter_ms: Some(read_number(total, "Average jitter")? * 1e3),
        delay_mean_ms: Some(read_number(total, "Average delay")? * 1e3),
        ..Figures::default()
    })
}

/// The first word behind a key of the log's total: `Total packets            =         53661`.
fn find_field<'a>(total: &'a str, key: &str) -> Result<&'a str, String> {
    let line = total.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    line.and_then(|line| line.split_whitespace().next()).ok_or_else(|| format!("ITGDec prints no {key}"))
}

fn read_count(total: &str, key: &str) -> Result<u64, String> {
    count(key, find_field(total, key)?)
}

fn read_number(total: &str, key: &str) -> Result<f64, String> {
    number(key, find_field(total, key)?)
}
