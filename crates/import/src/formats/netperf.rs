//! Text of netperf, version 2.4 to 2.7: tables of `-v 1` and `-v 2`, and `KEY=VALUE` lines of omni tests (`-k`). It has
//! no version. The line `.. TEST from ..` tells test and family; `-P 0` leaves it out.

use super::forms::{CUT, Unread, cut_line};
use super::netperf_lines::{columns, key_of};
use super::netperf_rows::TestLines;
use super::netperf_tests::{read_keys, read_table};
use crate::test::{Format, ToolFile, ToolTest};
use crate::value::ImportError;

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

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut found = split_tests(text)?;
    for lines in found.iter_mut().filter(|lines| lines.assignments.is_empty()) {
        if let Some((place, assignments)) = columns(&lines.all) {
            lines.omni_line = Some(place);
            lines.assignments = assignments;
        }
    }
    let mut tests = Vec::new();
    let mut left_out = Vec::new();
    let mut unread = Unread::default();
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
        let test = if lines.assignments.is_empty() { read_table(lines) } else { read_keys(lines) };
        left_out.extend(lines.describe_further_rows());
        match test.map_err(|reason| ImportError::of_line(lines.place, reason))? {
            Ok(mut test) => {
                warn_of_doubts(&mut test, lines);
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

/// The lines of each test. A test begins with its banner, and an omni test without one with a key that the test before
/// has already.
fn split_tests(text: &str) -> Result<Vec<TestLines<'_>>, ImportError> {
    let mut found: Vec<TestLines> = Vec::new();
    let cut = cut_line(text);
    for (place, raw) in text.lines().enumerate().filter(|(_, raw)| !raw.trim().is_empty()) {
        let line = raw.trim();
        if cut == Some(place) && line.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(ImportError::of_line(place, CUT));
        }
        let begins = line.contains(" TEST from ");
        if begins || found.last().is_none_or(|test| test.has_key_of(line)) {
            ImportError::too_many(found.len(), place)?;
            found.push(TestLines::new(place, begins.then_some(line)));
        }
        if let Some(test) = found.last_mut().filter(|_| !begins) {
            test.read_line(place, raw);
        }
    }
    Ok(found)
}

fn warn_of_doubts(test: &mut ToolTest, lines: &TestLines) {
    if lines.is_doubtful {
        test.warn(
            "tool_confidence",
            "netperf says that the confidence which was asked for was not achieved (!!! WARNING)".to_owned(),
            "its figures vary: measure longer, or more often",
        );
    }
}
