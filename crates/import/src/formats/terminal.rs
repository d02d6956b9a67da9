//! What a terminal adds to the text of a tool, in the file of script(1) or copied from a window: escape codes, and `^C`
//! before the line that a program prints when it is interrupted.

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// Takes off what a terminal adds; `None` if it added nothing.
pub(super) fn take_off(text: &str) -> Option<String> {
    if !text.contains(ESCAPE) && !text.contains("^C") {
        return None;
    }
    let mut bare = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let line = without_codes(line);
        // A shell ends the first line of a command's output with a code and a return.
        let line = line.trim_start_matches('\r');
        bare.push_str(line.strip_prefix("^C").unwrap_or(line));
    }
    Some(bare)
}

/// A line without escape codes.
fn without_codes(line: &str) -> String {
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, code)) = rest.split_once(ESCAPE) {
        bare.push_str(before);
        rest = behind_code(code);
    }
    bare.push_str(rest);
    bare
}

/// What stands behind the escape code that a text begins with, without its first character.
fn behind_code(code: &str) -> &str {
    let mut letters = code.chars();
    match letters.next() {
        // Colours and modes: parameters, and a letter that ends them.
        Some('[') => {
            let rest = letters.as_str();
            let end = rest.find(|letter: char| ('@'..='~').contains(&letter));
            end.map_or("", |end| &rest[end + 1..])
        }
        // The title of a window, up to a bell or to an escape and a backslash.
        Some(']') => {
            let rest = letters.as_str();
            let end = rest.find(BELL).map(|end| end + 1);
            let end = end.or_else(|| rest.find("\u{1b}\\").map(|end| end + 2));
            end.map_or(rest, |end| &rest[end..])
        }
        _ => letters.as_str(),
    }
}
