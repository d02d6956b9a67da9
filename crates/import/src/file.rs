//! What is in a result file.

use crate::test::ToolTest;
use crate::value::ImportError;
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

/// Each format with its name on the command line and the tool that writes it.
const TABLE: [(Format, &str, &str); 10] = [
    (Format::Iperf3, "iperf3", "iperf3"),
    (Format::Iperf3Text, "iperf3-text", "iperf3"),
    (Format::IperfCsv, "iperf-csv", "iperf"),
    (Format::IperfText, "iperf-text", "iperf"),
    (Format::Netperf, "netperf", "netperf"),
    (Format::Ditg, "ditg", "D-ITG"),
    (Format::Flent, "flent", "flent"),
    (Format::Irtt, "irtt", "irtt"),
    (Format::Atlas, "atlas", "RIPE Atlas"),
    (Format::Csv, "csv", "stacklab"),
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
