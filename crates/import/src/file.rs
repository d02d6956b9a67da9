//! What is in a result file.

use crate::test::ToolTest;
use stacklab_model::RunRecord;

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

impl Format {
    /// All of them.
    pub const ALL: [Format; 10] = [
        Format::Iperf3,
        Format::Iperf3Text,
        Format::IperfCsv,
        Format::IperfText,
        Format::Netperf,
        Format::Ditg,
        Format::Flent,
        Format::Irtt,
        Format::Atlas,
        Format::Csv,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Iperf3 => "iperf3",
            Format::Iperf3Text => "iperf3-text",
            Format::IperfCsv => "iperf-csv",
            Format::IperfText => "iperf-text",
            Format::Netperf => "netperf",
            Format::Ditg => "ditg",
            Format::Flent => "flent",
            Format::Irtt => "irtt",
            Format::Atlas => "atlas",
            Format::Csv => "csv",
        }
    }

    /// The tool that writes it.
    pub fn tool(self) -> &'static str {
        match self {
            Format::Iperf3 | Format::Iperf3Text => "iperf3",
            Format::IperfCsv | Format::IperfText => "iperf",
            Format::Netperf => "netperf",
            Format::Ditg => "D-ITG",
            Format::Flent => "flent",
            Format::Irtt => "irtt",
            Format::Atlas => "RIPE Atlas",
            Format::Csv => "stacklab",
        }
    }
}

/// A file's content.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFile {
    /// Its format.
    pub format: Format,
    /// The tool's version, if the file tells it.
    pub version: Option<String>,
    /// Its tests.
    pub content: Content,
    /// What is in the file and in no test, and why: a sentence each.
    pub left_out: Vec<String>,
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
