//! Replaces control characters in untrusted text by U+FFFD: some of them command a terminal.

/// A text without control characters.
pub fn printable_text(text: &str) -> String {
    shown(text, |_| false)
}

/// A text of several lines, without control characters but the ends of lines.
pub fn printable_lines(text: &str) -> String {
    shown(text, |c| c == '\n')
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    let shown = |c: char| if c.is_control() && !stays(c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced_and_ends_of_lines_where_there_are_lines() {
        let text = "a\u{1b}]0;b\u{9b}\r\nc";
        assert_eq!(printable_text(text), "a\u{fffd}]0;b\u{fffd}\u{fffd}\u{fffd}c");
        assert_eq!(printable_lines(text), "a\u{fffd}]0;b\u{fffd}\u{fffd}\nc");
    }
}
