//! The lines of netperf, versions 2.4 to 2.7: headings of its tables as forms, names of figures, and units.

use super::forms::Forms;
use crate::value::number;
use std::collections::BTreeMap;

/// Whether a line is one of an omni test: `KEY=VALUE`.
pub(crate) fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        key.len() > 2
            && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// What a line without figures is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Heading {
    /// The columns of a table, the number of those in its first row, and in its second if it has one.
    Columns(Columns, usize, usize),
    /// A row of `-v 2` follows.
    Details,
    /// The mean of tests that differ by more than was asked for.
    Doubtful,
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Columns {
    /// A rate of data.
    Data,
    /// Transactions per second.
    Transactions,
}
use Heading::{Columns as Has, Details, Doubtful, Known};

pub(super) const HEADINGS: &Forms<Heading> = &[
    // Streams: the unit of the rate is in the last line of a heading.
    (Has(Columns::Data, 5, 0), "bytes bytes bytes secs. {unit}"),
    (Has(Columns::Data, 9, 0), "bytes bytes bytes secs. {unit} /s % {w} % {w} us/KB us/KB"),
    (Has(Columns::Data, 9, 0), "bytes bytes bytes secs. {unit} % {w} % {w} us/KB us/KB"),
    (Has(Columns::Data, 6, 4), "bytes bytes secs # # {unit}"),
    (Has(Columns::Data, 8, 6), "bytes bytes secs # # {unit} % {w} us/KB"),
    (Known, "Recv Send Send< Utilization Service Demand>"),
    (Known, "Socket Socket Message Elapsed< Send Recv Send Recv>< Recv Send Recv Send>"),
    (Known, "Size Size Size Time Throughput< local remote local remote>"),
    (Known, "Socket Message Elapsed Messages< CPU Service>"),
    (Known, "Size Size Time Okay Errors Throughput< Util Demand>"),
    // Requests and answers.
    (Has(Columns::Transactions, 6, 2), "Socket Size Request Resp. Elapsed Trans."),
    (Has(Columns::Transactions, 10, 2), "Socket Size Request Resp. Elapsed Trans. CPU CPU S.dem S.dem"),
    (Known, "bytes bytes bytes bytes secs. per sec< % {w} % {w} us/Tr us/Tr>"),
    (Known, "bytes Bytes bytes bytes secs. per sec"),
    (Has(Columns::Data, 6, 2), "bytes Bytes bytes bytes secs. {unit}"),
    (Known, "Local /Remote"),
    (Known, "Socket Size Request Resp. Elapsed"),
    (Known, "Send Recv Size Size Time Rate< local remote local remote>"),
    (Known, "Send Recv Size Size Time Throughput"),
    // -v 2.
    (
        Details,
        "Alignment Offset< {w} {w} Sends {w} Recvs>< {w} {w} Recvs {w} Sends>< RoundTrip Trans Throughput>",
    ),
    (Known, "Local Remote Local Remote< Xfered Per Per>< Latency Rate {w}>"),
    (Known, "Send Recv Send Recv< Send (avg) Recv (avg)>< usec/Tran per sec Outbound Inbound>"),
    (Known, "Recv Send Recv Send Recv (avg) Send (avg)"),
    (Details, "Maximum"),
    (Known, "Segment"),
    (Known, "Size (bytes)"),
    // Demo mode, and confidence.
    (Known, "Interim result: {n} {w} over {n} seconds ending at {n}"),
    (Known, "NETPERF_{w}={w}"),
    (Known, "{n},{w},{n},{n}"),
    (Doubtful, "!!! WARNING"),
    (Known, "!!! Desired confidence was not achieved within the specified iterations."),
    (Known, "!!! This implies that there was variability in the test environment that"),
    (Known, "!!! must be investigated before going further."),
    (Known, "!!! Confidence intervals: Throughput : {n}%"),
    (Known, "!!! Local CPU util : {n}%"),
    (Known, "!!! Remote CPU util : {n}%"),
];

/// The key of a figure by its name in netperf's CSV (`-o`).
pub(super) fn key_of(name: &str) -> Option<&'static str> {
    Some(match name.trim() {
        "Throughput" => "THROUGHPUT",
        "Throughput Units" => "THROUGHPUT_UNITS",
        "Elapsed Time (sec)" | "Elapsed Time" => "ELAPSED_TIME",
        "Protocol" => "PROTOCOL",
        "Direction" => "DIRECTION",
        "Request Size Bytes" => "REQUEST_SIZE",
        "Response Size Bytes" => "RESPONSE_SIZE",
        "Initial Burst Requests" => "BURST_SIZE",
        "Round Trip Latency usec/tran" => "RT_LATENCY",
        "Mean Latency Microseconds" => "MEAN_LATENCY",
        "50th Percentile Latency Microseconds" => "P50_LATENCY",
        "99th Percentile Latency Microseconds" => "P99_LATENCY",
        "Local Send Size" => "LOCAL_SEND_SIZE",
        "Remote Send Size" => "REMOTE_SEND_SIZE",
        "Local Bytes Sent" => "LOCAL_BYTES_SENT",
        "Remote Bytes Sent" => "REMOTE_BYTES_SENT",
        "Local Bytes Received" => "LOCAL_BYTES_RECVD",
        "Remote Bytes Received" => "REMOTE_BYTES_RECVD",
        "Local Recv Throughput" => "LOCAL_RECV_THROUGHPUT",
        "Remote Recv Throughput" => "REMOTE_RECV_THROUGHPUT",
        "Local CPU Util %" => "LOCAL_CPU_UTIL",
        "Remote CPU Util %" => "REMOTE_CPU_UTIL",
        "Local Service Demand" => "LOCAL_SD",
        "Remote Service Demand" => "REMOTE_SD",
        "Local Transport Retransmissions" => "LOCAL_TRANSPORT_RETRANS",
        "Remote Transport Retransmissions" => "REMOTE_TRANSPORT_RETRANS",
        _ => return None,
    })
}

/// Mbit/s of a unit (`-f`); `None` of another one. Bits are in powers of 1000, bytes in powers of 1024. Where a column
/// has eight letters for it, the time stands apart: `KBytes  /s`.
pub(super) fn megabits_of(unit: &str) -> Option<f64> {
    const KIBI: f64 = 1024.0;
    let (amount, time) = unit.split_once('/').unwrap_or((unit, "s"));
    Some(match amount {
        _ if !["s", "sec"].contains(&time) => return None,
        "bits" | "10^0bits" => 1e-6,
        "10^3bits" => 1e-3,
        "10^6bits" => 1.0,
        "10^9bits" => 1e3,
        "Bytes" => 8e-6,
        "KBytes" => 8e-6 * KIBI,
        "MBytes" => 8e-6 * KIBI * KIBI,
        "GBytes" => 8e-6 * KIBI * KIBI * KIBI,
        _ => return None,
    })
}

/// The figures of an omni test's table (`-O`), and their line: names run downwards over their values, in columns of one
/// width. `lines` are those of the test, with their numbers.
pub(super) fn columns<'a>(lines: &[(usize, &'a str)]) -> Option<(usize, BTreeMap<&'a str, &'a str>)> {
    for (row, (place, values)) in lines.iter().enumerate().skip(1) {
        let figures = read_columns(&lines[..row], values);
        // A line of headings is not a line of values.
        if figures.len() > 1 && figures.iter().all(|(key, value)| is_value(key, value)) {
            return Some((*place, figures));
        }
    }
    None
}

/// The values of a line, by the headings above them.
fn read_columns<'a>(headings: &[(usize, &'a str)], values: &'a str) -> BTreeMap<&'a str, &'a str> {
    let columns: Vec<&str> = values.split_whitespace().collect();
    let starts: Vec<usize> =
        columns.iter().map(|value| value.as_ptr() as usize - values.as_ptr() as usize).collect();
    let mut figures = BTreeMap::new();
    for (column, value) in columns.iter().enumerate() {
        let next = starts.get(column + 1).copied().unwrap_or(usize::MAX);
        let mut words = Vec::new();
        for (_, line) in headings {
            let part = line.get(starts[column]..next.min(line.len())).unwrap_or_default().trim();
            if !part.is_empty() {
                words.push(part);
            }
        }
        if let Some(key) = key_of(&words.join(" ")) {
            figures.insert(key, *value);
        }
    }
    figures
}

fn is_value(key: &str, value: &str) -> bool {
    ["THROUGHPUT_UNITS", "PROTOCOL", "DIRECTION"].contains(&key) || number(value).is_some()
}
