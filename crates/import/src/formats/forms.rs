//! Lines that tools print, as forms. A reader of text has a table of forms; a line that has none of them is not
//! understood, and it is named.
//!
//! In a form, a space is any white space or none, `{name}` is a field, and what stands between `<` and `>` may be
//! missing. All else stands for itself.

use crate::value::{amount, bits_per_second, number};

/// Lines of a tool: what each is, and its form.
pub(super) type Forms<K> = [(K, &'static str)];

/// Fields that are numbers. `n` is one that is not read, and may be `nan`.
const NUMBERS: [&str; 14] = [
    "n", "from", "to", "jitter", "lost", "sent", "late", "retries", "rtt", "size", "all", "user", "seconds",
    "figure",
];

/// The fields of a line, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields<'t>(Vec<(&'static str, &'t str)>);

impl<'t> Fields<'t> {
    /// A field; empty if the line does not have it.
    pub(super) fn text(&self, name: &str) -> &'t str {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap_or_default()
    }

    /// A field that is a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        number(self.text(name))
    }

    /// `2.51 MBytes`, in bytes.
    pub(super) fn bytes(&self) -> Option<f64> {
        amount(self.text("bytes"), "Byte", 1024.0)
    }

    /// `10.5 Mbits/sec` or `1.25 MBytes/sec`, in bits per second.
    pub(super) fn rate(&self) -> Option<f64> {
        bits_per_second(self.text("rate"))
    }
}

/// What a line is by a table, and its fields; `None` if it has none of the forms.
pub(super) fn find<'t, K: Copy>(table: &Forms<K>, line: &'t str) -> Option<(K, Fields<'t>)> {
    table.iter().find_map(|(kind, form)| {
        let mut fields = Fields::default();
        let rest = read_form(form, line, &mut fields)?;
        rest.trim().is_empty().then_some((*kind, fields))
    })
}

/// What a line begins with by a table, its fields, and what stands behind.
pub(super) fn begin<'t, K: Copy>(table: &Forms<K>, line: &'t str) -> Option<(K, Fields<'t>, &'t str)> {
    table.iter().find_map(|(kind, form)| {
        let mut fields = Fields::default();
        let rest = read_form(form, line, &mut fields)?;
        Some((*kind, fields, rest))
    })
}

/// Reads what a form says, and gives what stands behind; `None` if the text does not have the form.
fn read_form<'t>(mut form: &'static str, mut rest: &'t str, fields: &mut Fields<'t>) -> Option<&'t str> {
    while let Some(letter) = form.chars().next() {
        if letter == ' ' {
            rest = rest.trim_start();
            form = form.trim_start();
        } else if let Some(behind) = form.strip_prefix('<') {
            let group = &behind[..group_bytes(behind)];
            let known = fields.0.len();
            match read_form(group, rest, fields) {
                Some(left) => rest = left,
                None => fields.0.truncate(known),
            }
            form = &behind[group.len() + 1..];
        } else if let Some(field) = form.strip_prefix('{') {
            let (name, behind) = field.split_once('}')?;
            let text = &rest[..field_bytes(name, behind, rest)?];
            fields.0.push((name, text));
            rest = &rest[text.len()..];
            form = behind;
        } else {
            rest = rest.strip_prefix(letter)?;
            form = &form[letter.len_utf8()..];
        }
    }
    Some(rest)
}

/// The length of what may be missing, up to its `>`.
fn group_bytes(form: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in form.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if depth == 0 => return at,
            '>' => depth -= 1,
            _ => {}
        }
    }
    form.len()
}

/// The length of a field at the begin of a text; `None` if it is not there. `behind` is the form behind it.
fn field_bytes(name: &str, behind: &str, text: &str) -> Option<usize> {
    let found = match name {
        // The rest of the line, which may be nothing.
        ".." | "tail" => return Some(text.len()),
        "bytes" => two_words(text).filter(|end| amount(&text[..*end], "Byte", 1024.0).is_some())?,
        "rate" => two_words(text).filter(|end| bits_per_second(&text[..*end]).is_some())?,
        "times" => span(text, |letter| letter.is_ascii_digit() || "./-".contains(letter)),
        "bins" => span(text, |letter| letter.is_ascii_digit() || letter == ':'),
        name if NUMBERS.contains(&name) => number_bytes(name, text)?,
        _ => {
            let next = behind.trim_start_matches('<').chars().next().filter(|next| !"{ ".contains(*next));
            span(text, |letter| !letter.is_whitespace() && Some(letter) != next)
        }
    };
    (found > 0).then_some(found)
}

fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_part(letter)).unwrap_or(text.len())
}

/// The length of a number and its unit.
fn two_words(text: &str) -> Option<usize> {
    let first = span(text, |letter| !letter.is_whitespace());
    let space = span(&text[first..], char::is_whitespace);
    let second = span(&text[first + space..], |letter| letter.is_ascii_alphabetic() || letter == '/');
    (second > 0).then_some(first + space + second)
}

/// The length of a number.
fn number_bytes(name: &str, text: &str) -> Option<usize> {
    let sign = span(text, |letter| letter == '-').min(1);
    let unsigned = &text[sign..];
    let end = match unsigned.get(..3) {
        Some("nan" | "inf") => 3,
        _ => {
            let digits = span(unsigned, |letter| letter.is_ascii_digit() || letter == '.');
            digits + exponent_bytes(&unsigned[digits..])
        }
    };
    let found = sign + end;
    let is_number = end > 0 && text[..found].parse::<f64>().is_ok();
    (is_number && (name == "n" || number(&text[..found]).is_some())).then_some(found)
}

/// The length of `e+02`.
fn exponent_bytes(text: &str) -> usize {
    let Some(exponent) = text.strip_prefix('e') else { return 0 };
    let sign = span(exponent, |letter| "+-".contains(letter)).min(1);
    let digits = span(&exponent[sign..], |letter| letter.is_ascii_digit());
    if digits == 0 { 0 } else { 1 + sign + digits }
}

/// Why figures of the last line are not read, if it has no end: a number may have lost its last digits.
pub(super) const CUT: &str =
    "this line has no end, so the file may be cut short in it: if the line is whole, add a line end";

/// The last line of a text, if it has no end: the file may be cut in it.
pub(super) fn cut_line(text: &str) -> Option<usize> {
    (!text.ends_with('\n')).then(|| text.lines().count().saturating_sub(1))
}

/// How much of a line is quoted, characters.
const MAX_QUOTED: usize = 80;

/// A line in a message, by its number from 0.
pub(super) fn quote(place: usize, line: &str) -> String {
    let line = line.trim();
    let quoted: String = line.chars().take(MAX_QUOTED).collect();
    let more = if quoted.len() < line.len() { ".." } else { "" };
    format!("line {}: `{quoted}{more}`", place + 1)
}

/// Why a test with such a line is left out.
pub(super) fn not_understood(place: usize, line: &str) -> String {
    format!(
        "{} is not understood, and it may change what the figures mean: remove the line if it is none of the tool's",
        quote(place, line)
    )
}

/// Lines that no test has, and that nothing is read of.
#[derive(Default)]
pub(super) struct Unread<'t> {
    first: Option<(usize, &'t str)>,
    count: usize,
}

impl<'t> Unread<'t> {
    pub(super) fn add(&mut self, place: usize, line: &'t str) {
        self.first.get_or_insert((place, line));
        self.count += 1;
    }

    /// `3 lines were not read: line 1: `..` and 2 more`; `None` if all were read.
    pub(super) fn describe(&self) -> Option<String> {
        let (place, line) = self.first?;
        let quoted = quote(place, line);
        Some(match self.count {
            1 => format!("1 line was not read: {quoted}"),
            count => format!("{count} lines were not read: {quoted} and {} more", count - 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'t>(form: &'static str, line: &'t str) -> Option<Fields<'t>> {
        find(&[((), form)], line).map(|(_, fields)| fields)
    }

    #[test]
    fn a_form_has_fields_and_parts_that_may_be_missing() {
        let form = "[ <*>{id}] {from}- {to} sec {bytes} {rate}< {jitter} ms {lost}/ {sent} ({n}%)>";
        let row =
            fields(form, "[ *3]  0.0- 1.5 sec  1.25 MBytes  1.05 Mbits/sec   0.010 ms    0/  891 (-nan%)")
                .unwrap();
        assert_eq!(
            (row.text("id"), row.number("to"), row.bytes(), row.rate()),
            ("3", Some(1.5), Some(1.25 * 1024.0 * 1024.0), Some(1.05e6))
        );
        assert_eq!(row.number("sent"), Some(891.0));
        let short = fields(form, "[3] 0.0-1.5 sec 1.25 MBytes 1.05 MBytes/sec").unwrap();
        assert_eq!((short.rate(), short.number("sent")), (Some(1.05 * 8.0 * 1024.0 * 1024.0), None));
        for damaged in [
            "[3] 0.0-1.5 sec 1.25 MBytes",
            "[3] 0.0-1.5 sec 1.25 MBytes 1.05 Mpages/sec",
            "[3] 0.0-1.5 sec 1.25 MBytes 1.05 Mbits/sec 7",
            "[3] 0.0-nan sec 1.25 MBytes 1.05 Mbits/sec",
            "[3] 0.0-1.5 min 1.25 MBytes 1.05 Mbits/sec",
            "",
        ] {
            assert!(fields(form, damaged).is_none(), "{damaged}");
        }
        assert_eq!(
            fields("({peer}, {n}<e{n}>)", "(fe80::1%eth0, 1e+02)").unwrap().text("peer"),
            "fe80::1%eth0"
        );
    }
}
