//! What stands before each line of a file: times and titles of iperf3 (`--timestamps`, `-T`), times and names of
//! journals and containers. The first line that a tool is known by has the pattern of all.

use super::iperf_csv::is_csv_line;
use super::netperf;
use std::collections::HashSet;

/// What the first lines of tools begin with. Versions of netperf before 2.7 have no `MIGRATED`.
const ANCHORS: [&str; 13] = [
    "Connecting to host ",
    "Accepted connection from ",
    "Client connecting to ",
    "Server listening on ",
    "MIGRATED ",
    "OMNI ",
    "TCP STREAM TEST from ",
    "TCP MAERTS TEST from ",
    "TCP REQUEST/RESPONSE TEST from ",
    "UDP STREAM TEST from ",
    "UDP REQUEST/RESPONSE TEST from ",
    "ITGDec ",
    "iperf3: error ",
];

/// What follows is the server's (iperf3 `--get-server-output`), and nothing stands before its lines.
const SERVER_OUTPUT: [&str; 2] = ["Server output:", "Server JSON output:"];

/// A text without what stands before each of its lines, and what stood before the first one.
pub(super) struct Bare {
    pub text: String,
    pub prefix: String,
    /// Two names that stand before lines in turn: the text is that of two programs.
    pub mixed: Option<[String; 2]>,
}

/// Takes off what stands before each line; `None` if nothing does.
pub(super) fn take_off(text: &str) -> Option<Bare> {
    if let Some(text) = of_container(text) {
        return Some(Bare { text, prefix: "{\"log\":".to_owned(), mixed: None });
    }
    let prefix = of_text(text).or_else(|| of_json(text))?;
    let mut bare = String::with_capacity(text.len());
    let mut lines = 0;
    let mut matching = 0;
    let mut is_in_server_output = false;
    let mut names = Names::default();
    for line in text.lines() {
        let rest = rest_behind(prefix, line);
        is_in_server_output = rest.is_none() && (is_in_server_output || SERVER_OUTPUT.contains(&line));
        lines += usize::from(!line.trim().is_empty() && !is_in_server_output);
        matching += usize::from(rest.is_some());
        if let Some(rest) = rest {
            names.add(&line[..line.len() - rest.len()]);
        }
        // What has no prefix stays as it is: an error that went to the same file.
        bare.push_str(rest.unwrap_or(line));
        bare.push('\n');
    }
    // A last line without an end may be cut: it stays so.
    if !text.ends_with('\n') {
        bare.pop();
    }
    (2 * matching > lines).then(|| Bare { text: bare, prefix: prefix.to_owned(), mixed: names.mixed })
}

/// The names of programs or hosts before lines, in the order in which they came.
#[derive(Default)]
struct Names {
    known: HashSet<String>,
    last: String,
    mixed: Option<[String; 2]>,
}

impl Names {
    /// Adds what stands before a line. A name that comes again behind another one is of a second program.
    fn add(&mut self, prefix: &str) {
        let name = name_in(prefix);
        if name == self.last {
            return;
        }
        if self.mixed.is_none() && self.known.contains(&name) {
            self.mixed = Some([name.clone(), self.last.clone()]);
        }
        self.known.insert(name.clone());
        self.last = name;
    }
}

/// The name in what stands before a line: that of a container, or a host, a program and its number. Words of letters
/// alone are those of dates; a word that begins with a digit is a time.
fn name_in(prefix: &str) -> String {
    if let Some((container, _)) = prefix.rsplit_once('|') {
        return container.trim().to_owned();
    }
    let mut words = Vec::new();
    for word in prefix.split_whitespace() {
        let bare = word.trim_matches(|letter: char| letter.is_ascii_punctuation());
        let is_time = bare.starts_with(|letter: char| letter.is_ascii_digit());
        let is_of_date = bare.chars().all(char::is_alphabetic);
        if !is_time && !is_of_date {
            words.push(word);
        }
    }
    words.join(" ")
}

/// What stands before the first line of a tool's text.
fn of_text(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| Some(&line[..find_tool(line)?]))
        .filter(|prefix| !prefix.trim().is_empty() && !prefix.contains('"'))
}

/// Where the text of a tool begins in a line: at words of its first line, at a time of iperf's CSV, or at a key of
/// netperf. `None` if it does not begin there.
fn find_tool(line: &str) -> Option<usize> {
    if let Some(at) = ANCHORS.iter().find_map(|anchor| line.find(anchor)) {
        return Some(at);
    }
    let word = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    (is_csv_line(word) || netperf::is_key(word)).then_some(line.len() - word.len())
}

/// What stands before the first line of JSON.
fn of_json(text: &str) -> Option<&str> {
    if text.lines().any(|line| line.trim_start().starts_with('{')) {
        return None;
    }
    text.lines().find_map(|line| {
        let (prefix, rest) = line.split_at(line.find('{')?);
        let rest = rest.trim_end();
        let is_document = rest == "{" || rest.starts_with("{\"") && rest.ends_with('}');
        (is_document && prefix.trim() != "[" && !prefix.contains('"')).then_some(prefix)
    })
}

/// The lines in the log of a container that Docker keeps as JSON.
fn of_container(text: &str) -> Option<String> {
    if !text.trim_start().starts_with("{\"log\":") {
        return None;
    }
    text.lines()
        .map(|line| if line.trim().is_empty() { Some("\n".to_owned()) } else { log_text(line) })
        .collect()
}

/// What a line of such a log says.
fn log_text(line: &str) -> Option<String> {
    let row: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(row.get("log")?.as_str()?.to_owned())
}

/// The class of a character: digits and letters differ from line to line, all else is the same.
#[derive(PartialEq)]
enum CharacterClass {
    Digit,
    Letter,
    Space,
    Mark(char),
}

fn class(letter: char) -> CharacterClass {
    match letter {
        letter if letter.is_ascii_digit() => CharacterClass::Digit,
        letter if letter.is_alphabetic() => CharacterClass::Letter,
        letter if letter.is_whitespace() => CharacterClass::Space,
        letter => CharacterClass::Mark(letter),
    }
}

/// The bytes of the first run of one class.
fn run_bytes(text: &str) -> usize {
    let Some(first) = text.chars().next().map(class) else { return 0 };
    text.find(|letter| class(letter) != first).unwrap_or(text.len())
}

/// What a line has behind a prefix of this form; `None` if it has none.
fn rest_behind<'a>(prefix: &str, line: &'a str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix(prefix) {
        return Some(rest);
    }
    let mut form = prefix;
    let mut rest = line;
    while !form.is_empty() {
        let known = &form[..run_bytes(form)];
        form = &form[known.len()..];
        let found = &rest[..run_bytes(rest)];
        let is_last_space = form.is_empty() && known.trim().is_empty();
        if is_last_space && (found.is_empty() || rest.starts_with(known)) {
            return Some(rest.get(known.len()..).unwrap_or_default());
        }
        let is_mark =
            known.chars().next().is_some_and(|letter| matches!(class(letter), CharacterClass::Mark(_)));
        let alike = known.chars().next().map(class) == found.chars().next().map(class);
        if !alike || is_mark && known != found {
            return None;
        }
        rest = &rest[found.len()..];
    }
    Some(rest)
}
