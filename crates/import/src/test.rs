//! Files of other tools, their tests, and the intervals of these.

use crate::value::{ImportError, untold};
use stacklab_model::{
    Cell, Direction, Family, IntervalRow, Metric, Probe, Role, RunRecord, SizeOf, ToolSeries, Transport,
    Value, Warning,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A format of result files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// JSON of iperf3 (`-J`, `--json-stream`).
    Iperf3,
    /// Text of iperf3.
    Iperf3Text,
    /// CSV of iperf 2 (`-y C`).
    IperfCsv,
    /// Text of iperf 2 (`-e`).
    IperfText,
    /// Text of netperf: `-v 2`, or `KEY=VALUE` of omni tests.
    Netperf,
    /// Text of D-ITG's ITGDec.
    Ditg,
    /// JSON of flent, compressed by gzip or not.
    Flent,
    /// JSON of irtt.
    Irtt,
    /// JSON of RIPE Atlas: pings.
    Atlas,
    /// CSV of `stacklab export`.
    Csv,
}

/// A test, as a tool tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolTest {
    /// The probe that its traffic is like.
    pub probe: Probe,
    /// Address family, if the file tells it.
    pub family: Option<Family>,
    /// Transport protocol, if the file tells it.
    pub transport: Option<Transport>,
    /// Bytes that the program sends by one call, if the file tells it.
    pub size: Option<u32>,
    /// Parallel flows.
    pub flows: u32,
    /// Direction, forward from the client.
    pub direction: Direction,
    /// The rate that was asked for, bits of payload per second; `None` if as fast as it goes.
    pub rate: Option<f64>,
    /// Begin, nanoseconds since the Unix epoch, if the file tells it.
    pub started_unix_ns: Option<u64>,
    /// Duration, nanoseconds; 0 if the file does not tell it.
    pub duration_ns: u64,
    /// Figures, and why some are missing.
    pub values: BTreeMap<Metric, Value>,
    /// What a reader of the figures must know.
    pub warnings: Vec<Warning>,
    /// Why the test does not count, if it does not.
    pub invalid: Vec<String>,
    /// Its intervals, if the file has them.
    pub series: Option<ToolSeries>,
    /// Whether its rate is what a client wrote: of datagrams, that says nothing of what arrived.
    pub(super) is_of_client: bool,
    /// What no other test has, as far as the file has such things: the first one that two tests have decides.
    pub(super) identities: Vec<Identity>,
    /// The end whose file it is, if the file says so.
    pub(super) side: Option<Side>,
}

/// A file's content.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFile {
    /// Its format.
    pub format: Format,
    /// The tool's version, if the file states it.
    pub version: Option<String>,
    /// Its tests.
    pub content: Content,
    /// What is in the file and in no test, and why: a sentence each.
    pub left_out: Vec<String>,
}

impl ToolFile {
    pub(super) fn of_tests(
        format: Format,
        version: Option<String>,
        tests: Vec<ToolTest>,
        left_out: Vec<String>,
    ) -> Result<Self, ImportError> {
        Ok(ToolFile { format, version, content: Content::Tests(tests), left_out })
    }
}

/// Tests of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Of another tool.
    Tests(Vec<ToolTest>),
    /// Runs of a record of stacklab, in blocks: what was paired stays paired.
    Runs(Vec<RunRecord>),
}

impl Content {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match self {
            Content::Tests(tests) => tests.is_empty(),
            Content::Runs(runs) => runs.is_empty(),
        }
    }
}

/// The properties of a test that determine its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untold {
    /// Address family.
    Family,
    /// Transport protocol.
    Transport,
    /// Message size.
    Size,
}

impl ToolTest {
    /// A test of one flow, of which nothing else is known.
    pub(super) fn new(probe: Probe) -> Self {
        ToolTest {
            probe,
            family: None,
            transport: None,
            size: None,
            flows: 1,
            direction: Direction::Forward,
            rate: None,
            started_unix_ns: None,
            duration_ns: 0,
            values: BTreeMap::new(),
            warnings: Vec::new(),
            invalid: Vec::new(),
            series: None,
            is_of_client: false,
            identities: Vec::new(),
            side: None,
        }
    }

    /// Adds what somebody knows of the test; what the file tells stays.
    /// Fails with the one that the file states otherwise.
    pub fn tell(
        &mut self,
        family: Option<Family>,
        transport: Option<Transport>,
        size: Option<u32>,
    ) -> Result<(), Untold> {
        fn add<T: PartialEq + Copy>(
            known: &mut Option<T>,
            word: Option<T>,
            what: Untold,
        ) -> Result<(), Untold> {
            let contradicts = known.is_some() && word.is_some() && *known != word;
            *known = known.or(word);
            if contradicts { Err(what) } else { Ok(()) }
        }
        add(&mut self.family, family, Untold::Family)?;
        add(&mut self.transport, transport, Untold::Transport)?;
        add(&mut self.size, size, Untold::Size)?;
        if let Some(transport) = self.transport {
            self.values.retain(|metric, _| metric.applies_to(transport));
            if transport == Transport::Udp && self.is_of_client {
                self.set(Metric::Throughput, untold("the file", "what arrived"));
            }
        }
        Ok(())
    }

    /// Sets a figure; one that means nothing over the transport is left out, and one that cannot be is missing.
    pub(super) fn set(&mut self, metric: Metric, value: Value) {
        let value = match value {
            Value::Measured(figure) => {
                check_range(metric, figure).map_or_else(Value::Missing, Value::Measured)
            }
            other => other,
        };
        if self.transport.is_none_or(|transport| metric.applies_to(transport)) {
            self.values.insert(metric, value);
        }
    }

    /// Sets the retransmissions per message: how many segments the tool says were sent again, over the bytes that it
    /// says were sent.
    pub(super) fn set_retransmits(&mut self, segments: Option<f64>, sent_bytes: f64) {
        let value = match (segments, self.size) {
            (None, _) => untold("the file", "retransmissions"),
            (Some(_), None) => {
                untold("the file", "the size of messages, over which retransmissions are counted")
            }
            (Some(segments), Some(size)) => Value::finite(
                segments * f64::from(size) / sent_bytes,
                "the file has no count of what was sent",
            ),
        };
        self.set(Metric::Retransmits, value);
    }

    pub(super) fn warn(&mut self, code: &str, text: String, advice: &str) {
        self.warnings.push(Warning { code: code.to_owned(), text, advice: advice.to_owned() });
    }

    /// Warns of datagrams that arrived late, if there were any.
    pub(super) fn warn_late(&mut self, tool: &str, late: f64) {
        if late > 0.0 {
            self.warn(
                "tool_loss",
                format!("{tool} subtracts late datagrams from its losses, and {late} were late"),
                "the share of losses may be larger than the figure",
            );
        }
    }

    /// The cell of the test.
    /// Fails with the properties that are missing.
    pub fn cell(&self) -> Result<Cell, Vec<Untold>> {
        let ToolTest { family: Some(family), transport: Some(transport), size: Some(size), .. } = *self
        else {
            let told = [
                (self.family.is_some(), Untold::Family),
                (self.transport.is_some(), Untold::Transport),
                (self.size.is_some(), Untold::Size),
            ];
            return Err(told.into_iter().filter(|(told, _)| !told).map(|(_, untold)| untold).collect());
        };
        let mut cell = Cell::new(family, transport, SizeOf::Write, size);
        cell.settings.flows = (self.flows > 1).then_some(self.flows);
        cell.settings.direction = (self.direction != Direction::Forward).then_some(self.direction);
        Ok(cell)
    }
}

/// A figure of a metric. Fails with the reason if it cannot be: old tools write counts below 0 for those that are too
/// large for them. Clocks that disagree may make a one-way delay negative.
pub(super) fn check_range(metric: Metric, figure: f64) -> Result<f64, String> {
    let is_share_of_losses = matches!(metric, Metric::Loss | Metric::EchoLoss);
    let unit = metric.unit().symbol();
    if figure < metric.possible_figures().low && !metric.is_one_way_delay() {
        return Err(format!("the file says {figure} {unit}, which is below 0"));
    }
    if figure > 1.0 && is_share_of_losses {
        return Err(format!("the file says {figure}, which is a share above 1"));
    }
    Ok(figure)
}

/// The family of the packets between two addresses; an IPv4 address may be written as one of IPv6, and have a zone.
pub(super) fn family(local: &str, peer: &str) -> Option<Family> {
    parse_family(peer).filter(|peer| parse_family(local).is_none_or(|local| local == *peer))
}

fn parse_family(address: &str) -> Option<Family> {
    let address: IpAddr = address.split('%').next()?.parse().ok()?;
    Some(Family::of(address.to_canonical()))
}

/// The family of packets by the number of IP's version.
pub(super) fn family_of_version(version: Option<f64>) -> Option<Family> {
    Family::ALL.iter().copied().find(|family| {
        let number = if *family == Family::Ipv4 { 4.0 } else { 6.0 };
        version == Some(number)
    })
}

/// Bytes of a message, if they are a whole number of a datagram's.
pub(super) fn datagram(bytes: f64) -> Option<u32> {
    (bytes >= 1.0 && bytes.fract() == 0.0 && bytes < 65_536.0).then_some(bytes as u32)
}

/// Bytes that a program sends by one call.
pub(super) fn write_size(bytes: f64) -> Option<u32> {
    (1.0..=f64::from(16 << 20)).contains(&bytes).then_some(bytes as u32)
}

/// Seconds in nanoseconds; 0 of a negative number.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// The most rows that are kept of a test, and of a JSON file.
pub(super) const MAX_ROWS: usize = 20_000;
/// How far the end of a row may be from the begin of the next, seconds: tools print rounded times.
const ROUNDED: f64 = 0.011;

/// The longest test, and the shortest interval, seconds.
const MAX_SECONDS: f64 = 1e7;
const MIN_SECONDS: f64 = 1e-6;
/// The most bytes and messages of a flow in a row.
const MAX_OF_ROW: f64 = 1e15;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    /// Seconds from the begin of the test.
    pub from: f64,
    /// Seconds.
    pub to: f64,
    /// Payload bytes.
    pub bytes: f64,
    /// Messages; 0 where they are not known.
    pub messages: f64,
}

/// The series of flows that one host counted. `None` unless the flows have the same rows, one behind the other.
pub(super) fn of_flows(role: Role, flows: &[Vec<Part>]) -> Option<ToolSeries> {
    let (first, others) = flows.split_first()?;
    let is_whole = flows.iter().all(|flow| flow.iter().all(is_sound))
        && first.len() > 1
        && first.len() <= MAX_ROWS
        && first.windows(2).all(|pair| {
            (pair[0].to - pair[1].from).abs() < ROUNDED && pair[0].from + MIN_SECONDS < pair[1].from
        });
    if !is_whole || !others.iter().all(|other| is_parallel(first, other)) {
        return None;
    }
    let begin = first[0].from;
    let mut rows = Vec::new();
    for (place, part) in first.iter().enumerate() {
        let messages: f64 = flows.iter().map(|flow| flow[place].messages).sum();
        let bytes: f64 = flows.iter().map(|flow| flow[place].bytes).sum();
        rows.push(IntervalRow {
            start_ns: nanoseconds(part.from - begin),
            messages: messages.round() as u64,
            bytes: bytes.round() as u64,
            delay_mean_ns: None,
        });
    }
    Some(ToolSeries { role, rows })
}

fn is_sound(part: &Part) -> bool {
    part.from >= 0.0 && part.to <= MAX_SECONDS && part.bytes <= MAX_OF_ROW && part.messages <= MAX_OF_ROW
}

/// Whether the rows of two flows begin at the same times.
fn is_parallel(first: &[Part], other: &[Part]) -> bool {
    other.len() == first.len()
        && other.iter().zip(first).all(|(one, other)| (one.from - other.from).abs() < ROUNDED)
}

/// How far the clocks of both ends may be apart, seconds.
const MAX_APART_S: f64 = 5.0;

/// What is the same at both ends of iperf 2: addresses and ports, which later tests may have too.
pub(super) const PORTS: &str = "ports";

/// An end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What no other test has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    /// What it is: `cookie`.
    pub what: &'static str,
    pub name: String,
    /// When the test was, seconds of any clock; `None` if the name is enough, or the file has no time.
    pub at_s: Option<f64>,
}

impl Identity {
    /// Whether both are of one test; `None` if a time is missing that would decide.
    pub(super) fn is_of(&self, other: &Identity) -> Option<bool> {
        if self.what != other.what || self.name != other.name {
            return Some(false);
        }
        match (self.at_s, other.at_s) {
            (Some(one), Some(other)) => Some((one - other).abs() <= MAX_APART_S),
            _ if self.what == PORTS => None,
            (None, None) => Some(true),
            _ => Some(false),
        }
    }
}
