//! What is in a result file.

use crate::error::ImportError;
use crate::formats::{
    atlas, csv, ditg, flent, iperf_csv, iperf_text, iperf3_json, iperf3_text, irtt, netperf,
};
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

/// Each format with its name on the command line, the tool that writes it, and its reader.
type Entry = (Format, &'static str, &'static str, fn(&str) -> Result<ToolFile, ImportError>);
const TABLE: [Entry; 10] = [
    (Format::Iperf3, "iperf3", "iperf3", iperf3_json::read),
    (Format::Iperf3Text, "iperf3-text", "iperf3", iperf3_text::read),
    (Format::IperfCsv, "iperf-csv", "iperf", iperf_csv::read),
    (Format::IperfText, "iperf-text", "iperf", iperf_text::read),
    (Format::Netperf, "netperf", "netperf", netperf::read),
    (Format::Ditg, "ditg", "D-ITG", ditg::read),
    (Format::Flent, "flent", "flent", flent::read),
    (Format::Irtt, "irtt", "irtt", irtt::read),
    (Format::Atlas, "atlas", "RIPE Atlas", atlas::read),
    (Format::Csv, "csv", "stacklab", csv::read),
];

impl Format {
    /// Every name on the command line.
    pub fn names() -> [&'static str; 10] {
        TABLE.map(|(_, name, ..)| name)
    }

    /// The format of a name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.into_iter().find(|(_, known, ..)| *known == name).map(|(format, ..)| format)
    }

    /// The tool that writes it.
    pub fn tool(self) -> &'static str {
        TABLE[self as usize].2
    }

    pub(super) fn read(self, text: &str) -> Result<ToolFile, ImportError> {
        TABLE[self as usize].3(text)
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
