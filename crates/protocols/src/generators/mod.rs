//! Other programs as generators of a trial: the command lines of both ends, and the figures in what they print. Each
//! generator is one file of this folder and one line of the table ([`tool`]).
//!
//! Each program gets the size of its messages, the same in both families: by default, iperf and iperf3 send
//! other sizes over IPv6.

mod ditg;
mod iperf;
mod iperf3;
mod netperf;

use stacklab_model::{Generator, Length, Transport, Tuning, printable_text};
use std::net::IpAddr;

/// The programs of a generator; `None` for stacklab's own.
pub fn tool(generator: Generator) -> Option<&'static Tool> {
    match generator {
        Generator::Stacklab => None,
        Generator::Iperf3 => Some(&iperf3::TOOL),
        Generator::Iperf => Some(&iperf::TOOL),
        Generator::Netperf => Some(&netperf::TOOL),
        Generator::Ditg => Some(&ditg::TOOL),
    }
}

/// Characters of a reason, which may quote a program, at most.
const MAX_REASON_CHARS: usize = 300;

/// What a program is to send, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Transport protocol.
    pub transport: Transport,
    /// Payload of a message, bytes.
    pub message_bytes: u32,
    /// When it ends.
    pub length: Length,
    /// Messages per second; `None`: as fast as it goes.
    pub per_second: Option<f64>,
    /// Whether each message is answered before the next one.
    pub round_trips: bool,
    /// Flows at once.
    pub flows: u32,
    /// Socket options.
    pub tuning: Tuning,
    /// The receiver's address, as the sender uses it.
    pub destination: IpAddr,
    /// The sender's own address.
    pub source: IpAddr,
    /// The receiver's own address. Behind a translator it is of another family than the sender's addresses.
    pub listen: IpAddr,
}

impl Traffic {
    /// Whole seconds of its time; `None` if it ends after messages.
    fn seconds(&self) -> Option<u64> {
        match self.length {
            Length::Time(ns) => Some(ns.div_ceil(1_000_000_000)),
            Length::Packets(_) => None,
        }
    }

    /// Bits of payload per second; `None`: as fast as it goes.
    fn bits_per_second(&self) -> Option<u64> {
        self.per_second.map(|rate| (rate * f64::from(self.message_bytes) * 8.0).round() as u64)
    }
}

/// The version of an address's protocol, as options name it.
fn ip_version(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 6,
    }
}

/// A program, to be found in PATH, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Its name.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl CommandLine {
    fn new(program: &'static str) -> Self {
        CommandLine { program, arguments: Vec::new() }
    }

    fn with(mut self, arguments: impl AsRef<str>) -> Self {
        self.arguments.extend(arguments.as_ref().split_whitespace().map(str::to_owned));
        self
    }

    /// With these arguments, if there is a value for them.
    fn maybe<T: ToString>(self, option: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(format!("{option} {}", value.to_string())),
            None => self,
        }
    }
}

/// What the programs of a trial have printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output<'a> {
    /// The sender's.
    pub sender: &'a str,
    /// The receiver's.
    pub receiver: &'a str,
    /// That of the program that reads the receiver's log, if there is one.
    pub decoded: &'a str,
}

/// A program's own figures; `None` where it reports none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Payload bytes sent.
    pub sent_bytes: Option<u64>,
    /// Payload bytes received.
    pub received_bytes: Option<u64>,
    /// Messages sent.
    pub sent_messages: Option<u64>,
    /// Messages received.
    pub received_messages: Option<u64>,
    /// Payload received, bits per second.
    pub bits_per_second: Option<f64>,
    /// Messages lost, over messages sent.
    pub loss: Option<f64>,
    /// Mean absolute difference of consecutive delays, milliseconds.
    pub jitter_ms: Option<f64>,
    /// Smoothed jitter (RFC 3550), milliseconds.
    pub jitter_rfc3550_ms: Option<f64>,
    /// Mean one-way delay, milliseconds.
    pub delay_mean_ms: Option<f64>,
    /// Median, mean and 99th percentile of the round trips, milliseconds.
    pub round_trip_ms: Option<[f64; 3]>,
    /// TCP segments sent again.
    pub retransmits: Option<u64>,
}

/// A generator's programs.
#[derive(Debug)]
pub struct Tool {
    /// The command line that prints the version of the sender's program.
    pub version: fn() -> CommandLine,
    /// The command line of the sender's end.
    pub sender: fn(&Traffic) -> CommandLine,
    /// That of the receiver's end, which is started first.
    pub receiver: fn(&Traffic) -> CommandLine,
    /// That of the program that reads the receiver's log, if there is one.
    pub decoder: Option<fn() -> CommandLine>,
    /// The protocol and port on which the receiver's end waits.
    pub port: fn(&Traffic) -> (Transport, u16),
    /// The port that data goes to, if it is known.
    pub data_port: u16,
    /// Whether the receiver's end ends with the sender's. Else it is interrupted (SIGINT).
    pub ends_itself: bool,
    /// Reads the figures of programs that have ended well. Its errors may quote them as they are.
    read: fn(&Traffic, &Output<'_>) -> Result<Figures, String>,
}

impl Tool {
    /// The figures of programs that have ended well: finite, and none negative.
    pub fn figures(&self, traffic: &Traffic, output: &Output<'_>) -> Result<Figures, String> {
        let checked = (self.read)(traffic, output).and_then(|figures| match figures.loss {
            Some(loss) if loss > 1.0 => Err(format!("it says that it lost {loss} of its messages")),
            _ => Ok(figures),
        });
        checked.map_err(|reason| {
            let start: String = reason.chars().take(MAX_REASON_CHARS).collect();
            printable_text(&start)
        })
    }
}

/// A number that a program printed as this figure.
fn number(what: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    let sensible = number.filter(|number| number.is_finite() && (0.0..=1e18).contains(number));
    sensible.ok_or_else(|| format!("it says {what} = {:.40}", text.trim()))
}

/// A count that a program printed as this figure.
fn count(what: &str, text: &str) -> Result<u64, String> {
    number(what, text).map(|number| number as u64)
}

#[cfg(test)]
mod tests;
