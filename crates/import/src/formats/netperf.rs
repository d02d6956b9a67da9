//! Text of netperf, version 2.4 to 2.7: tables of `-v 1` and `-v 2`, and `KEY=VALUE` lines of omni tests (`-k`). It has
//! no version. The line `.. TEST from ..` tells test and family; `-P 0` leaves it out.

use super::forms::{CUT, Unread, cut_line, find, quote};
use super::netperf_lines::{Columns, HEADINGS, Heading, columns, key_of};
use super::netperf_tests::{read_keys, read_table};
use crate::test::{Format, ToolFile};
use crate::value::{ImportError, number};
use stacklab_model::count;
use std::collections::BTreeMap;

/// Whether a line is one of an omni test: `KEY=VALUE`.
pub(crate) fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        key.len() > 2
            && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// Whether a text is of netperf: it has a banner, or figures of an omni test that only netperf names so.
pub(crate) fn is_text(text: &str) -> bool {
    if text.contains(" TEST from ") {
        return true;
    }
    text.lines().any(|line| {
        let names = line.split(',').filter(|name| key_of(name).is_some()).count();
        names > 1 || is_key(line.trim_start())
    })
}

/// Whether a line begins with a figure of an omni test that only netperf names so.
pub(super) fn is_key(line: &str) -> bool {
    const KEYS: [&str; 8] = [
        "THROUGHPUT=",
        "THROUGHPUT_UNITS=",
        "TRANSACTION_RATE=",
        "ELAPSED_TIME=",
        "RT_LATENCY=",
        "MEAN_LATENCY=",
        "LOCAL_SEND_SIZE=",
        "REMOTE_SEND_SIZE=",
    ];
    KEYS.iter().any(|key| line.starts_with(key))
}

/// The most lines in which the table of an omni test (`-O`) is looked for.
const MAX_HEADINGS: usize = 16;

/// A line of numbers alone.
pub(super) struct Row<'a> {
    pub(super) place: usize,
    pub(super) numbers: Vec<f64>,
    pub(super) words: Vec<&'a str>,
}

#[derive(Default)]
pub(super) struct Lines<'a> {
    place: usize,
    pub(super) banner: Option<&'a str>,
    pub(super) assignments: BTreeMap<&'a str, &'a str>,
    /// The line of its figures, if they stand under headings of an omni test.
    omni_line: Option<usize>,
    pub(super) columns: Option<(Columns, usize, usize)>,
    /// The unit of its rate.
    pub(super) unit: Option<&'a str>,
    is_doubtful: bool,
    pub(super) rows: Vec<Row<'a>>,
    /// Rows of `-v 2`, and how many of its headings have none yet.
    pub(super) details: Vec<Row<'a>>,
    awaited_details: usize,
    /// Lines that are not understood, and how many rows came before.
    pub(super) strange: Vec<(usize, &'a str, usize)>,
    all: Vec<(usize, &'a str)>,
    /// The keys that the line before named (`-o`).
    names: Option<Vec<Option<&'static str>>>,
}

impl Lines<'_> {
    /// Names rows behind those of its table: with `-P 0` a test prints no heading, and such a row may be of any test.
    fn describe_further_rows(&self) -> Option<String> {
        let further = match (self.omni_line, self.columns) {
            (Some(figures), _) => self.rows.iter().position(|row| row.place > figures)?,
            (None, _) if !self.assignments.is_empty() => 0,
            (None, Some((Columns::Data, _, 0))) => 1,
            (None, Some(_)) => 2,
            (None, None) => return None,
        };
        let rows = self.rows.get(further..).filter(|rows| !rows.is_empty())?;
        Some(format!(
            "line {}: {} behind the figures of this test, which may be of another one: run netperf without -P 0",
            rows[0].place + 1,
            count(rows.len(), "row")
        ))
    }

    fn is_test(&self) -> bool {
        self.banner.is_some() || !self.assignments.is_empty()
    }

    pub(super) fn cut_short(&self) -> String {
        let strange = self
            .strange
            .last()
            .map(|(place, line, _)| format!("; {} is not understood", quote(*place, line)));
        format!("the figures of this test are missing: the file is cut short{}", strange.unwrap_or_default())
    }

    /// Whether a line is within the table, by how many rows stand before it.
    pub(super) fn is_within(&self, rows_before: usize) -> bool {
        self.banner.is_some() && self.assignments.is_empty() && rows_before < self.rows.len()
    }
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut found: Vec<Lines> = Vec::new();
    let cut = cut_line(text);
    for (place, raw) in text.lines().enumerate().filter(|(_, raw)| !raw.trim().is_empty()) {
        let line = raw.trim();
        if cut == Some(place) && line.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(ImportError::of_line(place, CUT));
        }
        let begins = line.contains(" TEST from ");
        // Without banners each omni test begins with a key that it has already.
        let again = || {
            let key = line.split_once('=').map_or("", |(key, _)| key);
            is_assignment(line) && found.last().is_some_and(|test| test.assignments.contains_key(key))
        };
        if begins || found.is_empty() || again() {
            ImportError::too_many(found.len(), place)?;
            found.push(Lines { place, banner: begins.then_some(line), ..Lines::default() });
        }
        let Some(test) = found.last_mut() else { continue };
        if !begins && test.all.len() < MAX_HEADINGS {
            test.all.push((place, raw));
        }
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        match numbers {
            _ if begins => {}
            // -o: a line of names, and a line of values.
            _ if test.names.as_ref().is_some_and(|names| names.len() == line.split(',').count()) => {
                let names = test.names.take().unwrap_or_default();
                let known = names.into_iter().zip(line.split(','));
                test.assignments.extend(known.filter_map(|(name, value)| Some((name?, value.trim()))));
            }
            None if line.contains(',') && !is_assignment(line) => {
                let names: Vec<Option<&str>> = line.split(',').map(key_of).collect();
                test.names = Some(names).filter(|names| names.iter().any(Option::is_some));
                if test.names.is_none() {
                    test.read_heading(place, line);
                }
            }
            _ if is_assignment(line) => {
                test.assignments.extend(line.split_once('='));
            }
            Some(numbers) if !numbers.is_empty() => {
                let row = Row { place, numbers, words: line.split_whitespace().collect() };
                let is_detail = test.awaited_details > 0;
                test.awaited_details -= usize::from(is_detail);
                if is_detail { test.details.push(row) } else { test.rows.push(row) }
            }
            _ => test.read_heading(place, line),
        }
    }
    let mut tests = Vec::new();
    let mut left_out = Vec::new();
    let mut unread = Unread::default();
    for lines in found.iter_mut().filter(|lines| lines.assignments.is_empty()) {
        if let Some((place, assignments)) = columns(&lines.all) {
            lines.omni_line = Some(place);
            lines.assignments = assignments;
        }
    }
    for lines in &found {
        // Headings of an omni test's table are its figures' names.
        for (place, line, before) in &lines.strange {
            if !lines.is_within(*before) && lines.omni_line.is_none_or(|figures| *place > figures) {
                unread.add(*place, line);
            }
        }
        if !lines.is_test() {
            lines.rows.iter().for_each(|row| unread.add(row.place, row.words[0]));
            continue;
        }
        let failed = |reason: String| ImportError::of_line(lines.place, reason);
        let test = if lines.assignments.is_empty() { read_table(lines) } else { read_keys(lines) };
        left_out.extend(lines.describe_further_rows());
        match test.map_err(failed)? {
            Ok(mut test) => {
                if lines.is_doubtful {
                    let text =
                        "netperf says that the confidence which was asked for was not achieved (!!! WARNING)";
                    test.warn(
                        "tool_confidence",
                        text.to_owned(),
                        "its figures vary: measure longer, or more often",
                    );
                }
                tests.push(test);
            }
            Err(what) => left_out.push(format!("line {}: {what}", lines.place + 1)),
        }
    }
    if tests.is_empty() && left_out.is_empty() {
        let reason = "it has no line `.. TEST from ..` and no KEY=VALUE: run netperf without -P 0";
        return Err(ImportError::of_file(reason));
    }
    left_out.extend(unread.describe());
    ToolFile::of_tests(Format::Netperf, None, tests, left_out)
}

impl<'a> Lines<'a> {
    /// Takes a line without figures.
    fn read_heading(&mut self, place: usize, line: &'a str) {
        match find(HEADINGS, line) {
            Some((Heading::Columns(columns, first, second), fields)) => {
                self.columns = Some((columns, first, second));
                self.unit = Some(fields.text("unit")).filter(|unit| !unit.is_empty());
            }
            Some((Heading::Details, _)) => self.awaited_details += 1,
            Some((Heading::Doubtful, _)) => self.is_doubtful = true,
            Some((Heading::Known, _)) => {}
            None => self.strange.push((place, line, self.rows.len())),
        }
    }
}
