//! Lines for people on standard error. On a terminal they break between words, as a report's lines do.

use std::io::{IsTerminal, stderr};
use terminal_size::{Width, terminal_size_of};

/// Columns below which nothing is wrapped: a terminal without a size says 0.
const MIN_COLUMNS: usize = 20;

/// Prints lines on standard error.
pub fn note(text: &str) {
    eprintln!("{}", wrap_for_stderr(text));
}

/// The text with its lines broken at the terminal's width, if standard error is a terminal. Files and pipes get whole
/// lines.
pub fn wrap_for_stderr(text: &str) -> String {
    match terminal_size_of(stderr()) {
        Some((Width(columns), _)) if stderr().is_terminal() && usize::from(columns) >= MIN_COLUMNS => {
            wrap(text, columns.into())
        }
        _ => text.to_owned(),
    }
}

/// Breaks lines that are too long between words. A word that is longer than a line, such as a path, stays whole.
fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((room, _)) = rest.char_indices().nth(columns) {
            // A space right behind the last column ends a line, too.
            let last = rest[..room].rfind(' ').filter(|_| !rest[room..].starts_with(' '));
            let end = if rest[room..].starts_with(' ') { Some(room) } else { last };
            let text_begins = rest.len() - rest.trim_start().len();
            let Some(end) =
                end.filter(|end| *end > text_begins).or_else(|| rest[room..].find(' ').map(|at| room + at))
            else {
                break;
            };
            wrapped.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start();
        }
        wrapped.push(rest.to_owned());
    }
    wrapped.join("\n")
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
}
