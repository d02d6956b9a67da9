//! Reading a file of any format.

use crate::import::error::{At, ImportError};
use crate::import::file::{Format, ToolFile};
use crate::import::value::MOST_BYTES;
use crate::import::{csv, ditg, flent, iperf, iperf3, netperf};
use std::io::Read;

/// Reads a file, of a format given or found from its content.
///
/// # Errors
/// The first place that cannot be read, and why. Nothing of a damaged file is given.
pub fn read(file: &[u8], format: Option<Format>) -> Result<ToolFile, ImportError> {
    if file.len() > MOST_BYTES {
        return Err(ImportError::of_file(format!("it is longer than {} MiB", MOST_BYTES >> 20)));
    }
    let content = inflated(file)?;
    let bytes = content.as_deref().unwrap_or(file);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ImportError::new(At::Byte(error.valid_up_to()), "here is no text (UTF-8)".to_owned())
    })?;
    if text.trim().is_empty() {
        return Err(ImportError::of_file("it is empty".to_owned()));
    }
    let unknown = || {
        let names = Format::ALL.map(Format::name).join(", ");
        ImportError::of_file(format!("its format is not known: name one by --format ({names})"))
    };
    match format.or_else(|| format_of(text)).ok_or_else(unknown)? {
        Format::Iperf3 => iperf3::read(text),
        Format::IperfCsv => iperf::read_csv(text),
        Format::IperfText => iperf::read_text(text),
        Format::Netperf => netperf::read(text),
        Format::Ditg => ditg::read(text),
        Format::Flent => flent::read(text),
        Format::Csv => csv::read(text),
    }
}

/// The content of a file that gzip compressed; `None` of another one.
fn inflated(file: &[u8]) -> Result<Option<Vec<u8>>, ImportError> {
    if !file.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut content = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(file).take(MOST_BYTES as u64 + 1);
    let read = reader.read_to_end(&mut content);
    if content.len() > MOST_BYTES {
        return Err(ImportError::of_file(format!("its content is longer than {} MiB", MOST_BYTES >> 20)));
    }
    read.map_err(|error| {
        let reason = format!("gzip cannot be read on ({error}): the file is damaged or cut short");
        ImportError::new(At::Inflated(content.len()), reason)
    })?;
    Ok(Some(content))
}

/// The format of a file's content; `None` if it is none of them.
fn format_of(content: &str) -> Option<Format> {
    let begin: String = content.chars().take(4096).collect();
    let first = begin.lines().map(str::trim).find(|line| !line.is_empty())?;
    let has = |word: &str| begin.contains(word);
    let is_iperf_csv = || first.split_once(',').is_some_and(|(time, _)| iperf::is_csv_time(time));
    Some(match first {
        first
            if first.starts_with('{')
                && (has("\"intervals\"") || has("\"connected\"") || has("\"event\"")) =>
        {
            Format::Iperf3
        }
        first if first.starts_with('{') => Format::Flent,
        first if first.starts_with("block,") => Format::Csv,
        first if first.starts_with("ITGDec") => Format::Ditg,
        _ if has("Flow number:") => Format::Ditg,
        _ if is_iperf_csv() => Format::IperfCsv,
        _ if has("Client connecting to ") || has("Server listening on ") => Format::IperfText,
        _ if has(" TEST from ") || has("Throughput") || begin.lines().any(netperf::is_assignment) => {
            Format::Netperf
        }
        _ => return None,
    })
}
