//! Lines for people. On a terminal they break between words, as a report's lines do.

use stacklab_model::{printable_lines, say};
use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;
use terminal_size::{Width, terminal_size_of};

/// Columns below which nothing is wrapped: a terminal without a size says 0.
const MIN_COLUMNS: usize = 20;

/// Prints lines on standard error. Words of records and other hosts in them have no control characters then.
pub fn note(text: &str) {
    say!("{}", wrap_for_stderr(&printable_lines(text)));
}

/// The text with its lines broken at the terminal's width, if standard error is a terminal. Files and pipes get whole
/// lines.
pub fn wrap_for_stderr(text: &str) -> String {
    wrap_for(&stderr(), text)
}

/// The same for standard output, of text that is not yet wrapped.
pub fn wrap_for_stdout(text: &str) -> String {
    wrap_for(&stdout(), text)
}

fn wrap_for<S: IsTerminal + AsFd>(stream: &S, text: &str) -> String {
    match terminal_size_of(stream) {
        Some((Width(columns), _)) if stream.is_terminal() && usize::from(columns) >= MIN_COLUMNS => {
            wrap(text, columns.into())
        }
        _ => text.to_owned(),
    }
}

/// Breaks lines that are too long between words. A word that is longer than a line, such as a path, stays whole. What
/// follows is below the text of the line, or in a list or table below what stands behind its label.
fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = Vec::new();
    for line in text.lines() {
        if is_rule(line) {
            wrapped.push(line.chars().take(columns).collect());
            continue;
        }
        let indent = " ".repeat(find_indent(line, columns));
        let mut rest = line.to_owned();
        while let Some(end) = find_end(&rest, columns) {
            wrapped.push(rest[..end].trim_end().to_owned());
            rest = format!("{indent}{}", rest[end..].trim_start());
        }
        wrapped.push(rest);
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    wrapped.join("\n") + end
}

/// Whether a line is the one below the heading of a table.
fn is_rule(line: &str) -> bool {
    line.starts_with('─') && line.chars().all(|letter| letter == '─')
}

/// Where a line ends at the latest, in bytes, if it is too long: before a space, and with a word behind it.
fn find_end(line: &str, columns: usize) -> Option<usize> {
    let (room, _) = line.char_indices().nth(columns)?;
    let begins = line.len() - line.trim_start().len();
    let last = if line[room..].starts_with(' ') { Some(room) } else { line[..room].rfind(' ') };
    let before = last.filter(|end| *end > begins);
    let end = before.or_else(|| line[room..].find(' ').map(|at| room + at))?;
    if line[end..].trim().is_empty() { None } else { Some(end) }
}

/// How far lines are indented that continue this one.
fn find_indent(line: &str, columns: usize) -> usize {
    let text = line.trim_start();
    let begins = line.chars().count() - text.chars().count();
    let Some(gap) = text.find("  ") else { return begins };
    let label = text[..gap].chars().count();
    let spaces = text[gap..].chars().take_while(|letter| *letter == ' ').count();
    let behind_label = begins + label + spaces;
    if 2 * behind_label <= columns { behind_label } else { begins }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_short_ones_stay() {
        assert_eq!(wrap("sender on CPU 0, receiver on CPU 1", 20), "sender on CPU 0,\nreceiver on CPU 1");
        assert_eq!(wrap("a b\n\n  c", 20), "a b\n\n  c");
        assert_eq!(wrap("twenty columns here. and more", 20), "twenty columns here.\nand more");
        assert_eq!(wrap("▁▂▃▄▅▆▇█ ▁▂▃▄▅▆▇█ ▁▂▃▄▅▆▇█", 20), "▁▂▃▄▅▆▇█ ▁▂▃▄▅▆▇█\n▁▂▃▄▅▆▇█");
    }

    #[test]
    fn a_long_word_stays_whole() {
        let path = "/a/folder/with/a/long/name.stacklab";
        assert_eq!(wrap(&format!("record {path} is here"), 20), format!("record\n{path}\nis here"));
        assert_eq!(wrap(path, 20), path);
    }

    #[test]
    fn lines_continue_below_their_text() {
        let plan = "Testbed     two hosts, one link: no rate limit\nCells       12\n";
        let wrapped = "Testbed     two hosts, one link:\n            no rate limit\nCells       12\n";
        assert_eq!(wrap(plan, 34), wrapped);
        assert_eq!(wrap("  ipv6: no answer for a record", 20), "  ipv6: no answer\n  for a record");
        // A label that takes most of the line has nothing below it.
        assert_eq!(wrap("a label that is long  two words", 26), "a label that is long  two\nwords");
    }

    #[test]
    fn the_rule_of_a_table_is_cut() {
        assert_eq!(wrap(&"─".repeat(30), 20), "─".repeat(20));
        assert_eq!(wrap("short  ", 20), "short  ");
        assert_eq!(wrap("twenty columns here.     ", 20), "twenty columns here.     ");
    }
}
