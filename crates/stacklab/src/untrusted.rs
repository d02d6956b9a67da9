//! What reads strangers' records, requests and answers, as functions of bytes. The program calls the same by other
//! ways; this module is for the fuzz targets (`fuzz/`), which give it any bytes.

pub use crate::rig::remote_host::read_list;

use crate::campaign::record::conclude;
use crate::failure::Failure;
use crate::page::{ROOM, document};
use crate::serve::guard::{Guard, Pass};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use stacklab_model::{Difference, RunRecord};
use stacklab_report::page::html;
use stacklab_report::{Format, PaperFormat, TidyFormat, WIDTH, paper, render, tidy, tidy_slices};
use stacklab_store::Record;
use std::net::SocketAddr;
use std::path::Path;

/// What is made of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// `stacklab report --format json`.
    pub json: String,
    /// `stacklab report`, and its other formats that may be read on a terminal.
    pub texts: Vec<String>,
    /// `stacklab report --format raw-csv`.
    pub raw_csv: String,
    /// The page's document, which `stacklab serve` gives.
    pub document: String,
    /// `stacklab report --format html`; `None` if the program was built without the page.
    pub page: Option<String>,
    /// `stacklab export` as CSV: the runs, and their slices.
    pub rows: [Vec<u8>; 2],
}

/// Makes all reports of a record.
///
/// # Errors
/// Why there are none, as the program says it.
pub fn reports(path: &Path) -> Result<Made, String> {
    all_reports(path).map_err(|failure| failure.printed())
}

fn all_reports(path: &Path) -> Result<Made, Failure> {
    let record = Record::read(path)?;
    let findings = conclude(&record)?;
    let rendered = |format: Format| render(&findings, format, WIDTH);
    let mut texts: Vec<String> = [Format::Text, Format::Markdown, Format::Csv].map(rendered).into();
    texts.push(paper(&findings, Difference::Symmetric, PaperFormat::Latex, WIDTH));
    let document = document(&record, ROOM)?;
    let page = html(&document).ok();
    let document = serde_json::to_string(&document).expect("names and finite numbers become JSON");
    let runs = record.runs()?;
    let rows = tidy(&runs, TidyFormat::Csv);
    let whole = |run: RunRecord| Ok(RunRecord { host_reports: record.host_reports(&run.trial)?, ..run });
    let runs = runs.into_iter().map(whole).collect::<Result<Vec<_>, Failure>>()?;
    let slices = tidy_slices(&runs, TidyFormat::Csv);
    let (json, raw_csv) = (rendered(Format::Json), rendered(Format::RawCsv));
    Ok(Made { json, texts, raw_csv, document, page, rows: [rows, slices] })
}

/// Whether `stacklab serve`, bound to this address and with this token, answers a request with these headers and this
/// query. A header that is not HTTP is refused by the server's parser.
///
/// # Panics
/// If the token is not one that `serve` takes.
pub fn is_served(bound: SocketAddr, token: &str, headers: &[(&[u8], &[u8])], query: &str) -> bool {
    let guard = Guard::new(bound, Some(token)).expect("a token of letters and digits");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            return false;
        };
        map.append(name, value);
    }
    !matches!(guard.pass(&map, query), Pass::No(_))
}
