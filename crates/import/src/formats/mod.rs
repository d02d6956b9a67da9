//! The formats of result files, with a reader for each.

mod atlas;
pub(crate) mod csv;
mod ditg;
mod failures;
mod flent;
mod flent_streams;
mod foreign;
mod forms;
mod iperf3_checks;
mod iperf3_ends;
mod iperf3_json;
mod iperf3_lines;
mod iperf3_tests;
mod iperf3_text;
mod iperf3_ways;
mod iperf_csv;
mod iperf_csv_groups;
mod iperf_groups;
mod iperf_lines;
mod iperf_roles;
mod iperf_tests;
mod iperf_text;
mod irtt;
mod netperf;
mod netperf_lines;
mod netperf_rows;
mod netperf_tests;
mod plain;
mod prefix;
mod row_bytes;
mod terminal;

use crate::test::{Format, ToolFile};
use crate::value::ImportError;

pub use csv::{read_rows, starts_rows};
pub use plain::PlainText;

type Reader = fn(&str) -> Result<ToolFile, ImportError>;

struct FormatRow {
    format: Format,
    /// On the command line.
    name: &'static str,
    /// The tool that writes it.
    tool: &'static str,
    read: Reader,
}

const fn row(format: Format, name: &'static str, tool: &'static str, read: Reader) -> FormatRow {
    FormatRow { format, name, tool, read }
}

/// All formats.
const TABLE: &[FormatRow] = &[
    row(Format::Iperf3, "iperf3", "iperf3", iperf3_json::read),
    row(Format::Iperf3Text, "iperf3-text", "iperf3", iperf3_text::read),
    row(Format::IperfCsv, "iperf-csv", "iperf", iperf_csv::read),
    row(Format::IperfText, "iperf-text", "iperf", iperf_text::read),
    row(Format::Netperf, "netperf", "netperf", netperf::read),
    row(Format::Ditg, "ditg", "D-ITG", ditg::read),
    row(Format::Flent, "flent", "flent", flent::read),
    row(Format::Irtt, "irtt", "irtt", irtt::read),
    row(Format::Atlas, "atlas", "RIPE Atlas", atlas::read),
    row(Format::Csv, "csv", "stacklab", csv::read),
];

impl Format {
    /// Every name on the command line.
    pub fn names() -> Vec<&'static str> {
        TABLE.iter().map(|row| row.name).collect()
    }

    /// The format of a name.
    pub fn find_by_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.format)
    }

    /// The tool that writes it.
    pub fn tool(self) -> &'static str {
        self.row().tool
    }

    fn row(self) -> &'static FormatRow {
        TABLE.iter().find(|row| row.format == self).expect("each format has a row")
    }
}

/// Reads a file, of a format given or found from its content.
/// Fails at the first place that cannot be read: nothing of a damaged file is given.
pub fn read(file: &[u8], format: Option<Format>) -> Result<ToolFile, ImportError> {
    read_plain(&PlainText::unpack(file)?, format)
}

/// Reads the text of a file, as [`read`] does.
pub fn read_plain(plain: &PlainText, format: Option<Format>) -> Result<ToolFile, ImportError> {
    let text = plain.text();
    let found = format_of(text);
    let Some(format) = format.or(found) else {
        let kind = foreign::text(text);
        if let Some(failed) = failures::read(text).filter(|_| kind.is_none()) {
            return Ok(failed);
        }
        let names = Format::names().join(", ");
        let kind = kind.unwrap_or_else(|| format!("unknown format: name one with --format ({names})"));
        return Err(ImportError::of_file(kind));
    };
    let mut file = (format.row().read)(text).map_err(|error| match found {
        Some(found) if found != format => {
            let given = format.row().name;
            let fits = found.row().name;
            ImportError::of_file(format!(
                "its content is not {given}: leave out --format, or say --format {fits}"
            ))
        }
        _ => error,
    })?;
    if let Some(prefix) = plain.prefix() {
        file.left_out.insert(0, format!("what stands before each line, such as `{}`", prefix.trim_end()));
    }
    Ok(file)
}

/// Whether a line begins with a document of JSON. That of a server stands behind the text of its client
/// (iperf3 `--get-server-output`), and is the same test.
fn has_document(content: &str) -> bool {
    let own = content.lines().take_while(|line| line.trim() != "Server JSON output:");
    own.map(str::trim_start).any(|line| line.starts_with('{'))
}

/// Whether a line of iperf's CSV comes before any row of its text: messages, headings and names of columns may stand
/// before it.
fn is_iperf_csv(content: &str) -> bool {
    let mut lines = content.lines().map(str::trim);
    let first = lines.find(|line| line.starts_with('[') || iperf_csv::is_csv_line(line));
    first.is_some_and(iperf_csv::is_csv_line)
}

/// The format of a file's content; `None` if it is none of them.
fn format_of(content: &str) -> Option<Format> {
    let first = content.lines().map(str::trim).find(|line| !line.is_empty())?;
    let has = |word: &str| content.contains(word);
    // Tools write warnings before their JSON, where both go to one file.
    let is_json = has_document(content) || first.starts_with("[{");
    Some(match first {
        first if starts_rows(first.as_bytes()) => Format::Csv,
        _ if is_json && (has("\"intervals\"") || has("\"connected\"") || has("\"event\"")) => Format::Iperf3,
        _ if is_json && has("\"round_trips\"") && has("\"stats\"") => Format::Irtt,
        _ if first.starts_with(['[', '{']) && has("\"prb_id\"") && has("\"ping\"") => Format::Atlas,
        _ if is_json && (has("\"results\"") || has("\"metadata\"")) => Format::Flent,
        first if first.starts_with("ITGDec") => Format::Ditg,
        _ if has("Flow number:") => Format::Ditg,
        _ if is_iperf_csv(content) => Format::IperfCsv,
        _ if iperf3_text::is_text(content) => Format::Iperf3Text,
        _ if has("Client connecting to ") || has("Server listening on ") => Format::IperfText,
        _ if netperf::is_text(content) => Format::Netperf,
        _ => return None,
    })
}
