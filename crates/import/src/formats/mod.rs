//! The formats of result files, with a reader for each.

mod atlas;
pub(crate) mod csv;
mod ditg;
mod flent;
mod flent_streams;
mod foreign;
mod forms;
mod iperf3_json;
mod iperf3_lines;
mod iperf3_tests;
mod iperf3_text;
mod iperf_csv;
mod iperf_csv_groups;
mod iperf_groups;
mod iperf_lines;
mod iperf_tests;
mod iperf_text;
mod irtt;
mod netperf;
mod netperf_lines;
mod prefix;

use crate::test::{Format, ToolFile};
use crate::value::{At, ImportError, MAX_BYTES};
use stacklab_model::{NotText, read_text};
use std::io::Read;

pub use csv::{read_rows, starts_rows};

type Reader = fn(&str) -> Result<ToolFile, ImportError>;

/// Each format with its name on the command line, the tool that writes it, and its reader.
const TABLE: [(Format, &str, &str, Reader); 10] = [
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
}

/// Reads a file, of a format given or found from its content.
/// Fails at the first place that cannot be read: nothing of a damaged file is given.
pub fn read(file: &[u8], format: Option<Format>) -> Result<ToolFile, ImportError> {
    if file.len() > MAX_BYTES {
        return Err(ImportError::of_file(format!("it is longer than {} MiB", MAX_BYTES >> 20)));
    }
    let content = inflated(file)?;
    let bytes = content.as_deref().unwrap_or(file);
    if let Some(kind) = foreign::binary(bytes) {
        return Err(ImportError::of_file(kind));
    }
    let decoded = read_text(bytes).map_err(|NotText { at, is_wide }| {
        let encoding = if is_wide { "UTF-16" } else { "UTF-8, or UTF-16 with a byte order mark" };
        ImportError::new(At::Byte(at), format!("this is not text ({encoding})"))
    })?;
    let bare = prefix::take_off(&decoded);
    let text = bare.as_ref().map_or(decoded.as_ref(), |bare| &bare.text);
    if text.trim().is_empty() {
        return Err(ImportError::of_file("it is empty"));
    }
    let unknown = || {
        let names = Format::names().join(", ");
        let kind = foreign::text(text);
        let kind = kind.unwrap_or_else(|| format!("unknown format: name one with --format ({names})"));
        ImportError::of_file(kind)
    };
    let format = format.or_else(|| format_of(text)).ok_or_else(unknown)?;
    let mut file = TABLE[format as usize].3(text)?;
    if let Some(bare) = bare {
        file.left_out
            .insert(0, format!("what stands before each line, such as `{}`", bare.prefix.trim_end()));
    }
    Ok(file)
}

/// The content of a file that gzip compressed; `None` of another one.
fn inflated(file: &[u8]) -> Result<Option<Vec<u8>>, ImportError> {
    if !file.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut content = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(file).take(MAX_BYTES as u64 + 1);
    let read = reader.read_to_end(&mut content);
    if content.len() > MAX_BYTES {
        return Err(ImportError::of_file(format!("its content is longer than {} MiB", MAX_BYTES >> 20)));
    }
    read.map_err(|error| {
        let reason = format!("gzip cannot be read on ({error}): the file is damaged or cut short");
        ImportError::new(At::Inflated(content.len()), reason)
    })?;
    Ok(Some(content))
}

/// The format of a file's content; `None` if it is none of them.
fn format_of(content: &str) -> Option<Format> {
    let first = content.lines().map(str::trim).find(|line| !line.is_empty())?;
    let has = |word: &str| content.contains(word);
    // Tools write warnings before their JSON, where both go to one file.
    let is_json = content.lines().any(|line| line.trim_start().starts_with('{')) || first.starts_with("[{");
    let is_atlas = || first.starts_with(['[', '{']) && has("\"prb_id\"") && has("\"ping\"");
    let is_iperf_csv = || first.split_once(',').is_some_and(|(time, _)| iperf_csv::is_csv_time(time));
    Some(match first {
        first if first.starts_with("block,") => Format::Csv,
        _ if is_json && (has("\"intervals\"") || has("\"connected\"") || has("\"event\"")) => Format::Iperf3,
        _ if is_json && has("\"round_trips\"") && has("\"stats\"") => Format::Irtt,
        _ if is_atlas() => Format::Atlas,
        _ if is_json && (has("\"results\"") || has("\"metadata\"")) => Format::Flent,
        first if first.starts_with("ITGDec") => Format::Ditg,
        _ if has("Flow number:") => Format::Ditg,
        _ if is_iperf_csv() => Format::IperfCsv,
        _ if iperf3_text::is_text(content) => Format::Iperf3Text,
        _ if has("Client connecting to ") || has("Server listening on ") => Format::IperfText,
        _ if netperf::is_text(content) => Format::Netperf,
        _ => return None,
    })
}
