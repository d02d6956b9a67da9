//! The lines of one test of netperf, by what they are.

use super::forms::{find, quote};
use super::netperf_lines::{Columns, HEADINGS, Heading, is_assignment, key_of};
use crate::value::number;
use stacklab_model::count;
use std::collections::BTreeMap;

/// The most lines in which the table of an omni test (`-O`) is looked for.
const MAX_HEADINGS: usize = 16;

/// A line of numbers alone.
pub(super) struct NumberRow<'a> {
    pub(super) place: usize,
    pub(super) numbers: Vec<f64>,
    pub(super) words: Vec<&'a str>,
}

/// The lines of one test.
#[derive(Default)]
pub(super) struct TestLines<'a> {
    pub(super) place: usize,
    pub(super) banner: Option<&'a str>,
    pub(super) assignments: BTreeMap<&'a str, &'a str>,
    /// The line of its figures, if they stand under headings of an omni test.
    pub(super) omni_line: Option<usize>,
    pub(super) columns: Option<(Columns, usize, usize)>,
    /// The unit of its rate.
    pub(super) unit: Option<&'a str>,
    pub(super) is_doubtful: bool,
    pub(super) rows: Vec<NumberRow<'a>>,
    /// Rows of `-v 2`, and how many of its headings have none yet.
    pub(super) details: Vec<NumberRow<'a>>,
    awaited_details: usize,
    /// Lines that are not understood, and how many rows came before.
    pub(super) strange: Vec<(usize, &'a str, usize)>,
    pub(super) all: Vec<(usize, &'a str)>,
    /// The keys that the line before named (`-o`).
    names: Option<Vec<Option<&'static str>>>,
}

impl<'a> TestLines<'a> {
    /// A test that begins with this line, which may be its banner.
    pub(super) fn new(place: usize, banner: Option<&'a str>) -> Self {
        TestLines { place, banner, ..TestLines::default() }
    }

    /// Whether a line has a key that this test has already.
    pub(super) fn has_key_of(&self, line: &str) -> bool {
        is_assignment(line) && line.split_once('=').is_some_and(|(key, _)| self.assignments.contains_key(key))
    }

    /// Takes a line behind the banner.
    pub(super) fn read_line(&mut self, place: usize, raw: &'a str) {
        if self.all.len() < MAX_HEADINGS {
            self.all.push((place, raw));
        }
        let line = raw.trim();
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        match numbers {
            // -o: a line of names, and a line of values.
            _ if self.names.as_ref().is_some_and(|names| names.len() == line.split(',').count()) => {
                let names = self.names.take().unwrap_or_default();
                let known = names.into_iter().zip(line.split(','));
                self.assignments.extend(known.filter_map(|(name, value)| Some((name?, value.trim()))));
            }
            None if line.contains(',') && !is_assignment(line) => {
                let names: Vec<Option<&str>> = line.split(',').map(key_of).collect();
                self.names = Some(names).filter(|names| names.iter().any(Option::is_some));
                if self.names.is_none() {
                    self.read_heading(place, line);
                }
            }
            _ if is_assignment(line) => self.assignments.extend(line.split_once('=')),
            Some(numbers) if !numbers.is_empty() => {
                let row = NumberRow { place, numbers, words: line.split_whitespace().collect() };
                let is_detail = self.awaited_details > 0;
                self.awaited_details -= usize::from(is_detail);
                if is_detail { self.details.push(row) } else { self.rows.push(row) }
            }
            _ => self.read_heading(place, line),
        }
    }

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

    /// Names rows behind those of its table: with `-P 0` a test prints no heading, and such a row may be of any test.
    pub(super) fn describe_further_rows(&self) -> Option<String> {
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

    /// A row of the table, with as many columns as are known.
    pub(super) fn row(&self, place: usize, count: usize) -> Result<&NumberRow<'a>, String> {
        match self.rows.get(place) {
            Some(row) if row.numbers.len() == count => Ok(row),
            Some(row) if row.numbers.len() > count => {
                Err(format!("a row has {} columns, and {count} are known", row.numbers.len()))
            }
            _ => Err(self.cut_short()),
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.assignments.get(key).copied()
    }

    /// The number of a key. What netperf does not know is -1.
    pub(super) fn figure(&self, key: &str) -> Option<f64> {
        self.text(key).and_then(number).filter(|figure| *figure >= 0.0)
    }

    pub(super) fn is_test(&self) -> bool {
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
