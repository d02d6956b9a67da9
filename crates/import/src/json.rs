//! JSON as tools write it: a name may be there twice, and what nobody needs is not kept.

use crate::test::MAX_ROWS;
use crate::value::{At, ImportError};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::Index;

/// The most lines beside documents that are kept.
const MAX_BESIDE: usize = 20;
/// The most values of a document that are kept: 64 bytes each.
const MAX_VALUES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    /// Null, or what is not kept.
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// An object. Names may be there more than once.
    Fields(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.fields().iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    pub(super) fn fields(&self) -> &[(String, Json)] {
        if let Json::Fields(fields) = self { fields } else { &[] }
    }

    pub(super) fn items(&self) -> &[Json] {
        if let Json::List(items) = self { items } else { &[] }
    }

    /// A number, or true as 1 and false as 0; none beyond 10^18.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Json::Number(number) => Some(*number).filter(|number| number.abs() <= 1e18),
            Json::Bool(on) => Some(f64::from(u8::from(*on))),
            _ => None,
        }
    }

    /// A number that is no less than 0.
    pub(super) fn count(&self, name: &str) -> Option<f64> {
        self.number(name).filter(|number| *number >= 0.0)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if let Json::Text(text) = self.get(name)? { Some(text) } else { None }
    }

    /// Whether a field is true, or a number that is not 0.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| number != 0.0)
    }
}

/// A field; null where there is none.
impl Index<&str> for Json {
    type Output = Json;

    fn index(&self, name: &str) -> &Json {
        self.get(name).unwrap_or(&Json::Null)
    }
}

/// The documents of a text, and what stands between them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Documents {
    /// The documents: objects, each of which begins a line or is in a list.
    pub documents: Vec<Json>,
    /// The first lines that belong to none, as tools write to the same file, with the number of documents before each.
    pub beside: Vec<(usize, String)>,
    /// Documents that are rows, those that were left out included.
    pub rows: usize,
}

impl Documents {
    /// What is said of the lines beside the documents.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.beside.iter().map(|(_, line)| format!("a line outside the JSON: {line}")).collect()
    }
}

/// Rows of a text: items of a list, or documents.
#[derive(Debug)]
pub(super) struct Rows {
    pub list: &'static str,
    /// How a document begins that is a row.
    pub document: Option<&'static str>,
    /// The fields that are kept of a row, and of what is in it.
    pub fields: &'static [&'static str],
}

const NO_ROWS: Rows = Rows { list: "", document: None, fields: &[] };

/// The documents of a text, one after another, without fields of the names `dropped`.
pub(super) fn documents(text: &str, dropped: &'static [&'static str]) -> Result<Documents, ImportError> {
    with_rows(text, dropped, &NO_ROWS)
}

/// The documents of a text, as [`documents`] reads them. Rows are read briefly, and [`MAX_ROWS`] at most: of a longer
/// list nothing is kept, and of more documents that are rows only the first ones and one more.
pub(super) fn with_rows(
    text: &str,
    dropped: &'static [&'static str],
    of_rows: &Rows,
) -> Result<Documents, ImportError> {
    let mut found = Documents::default();
    let left = Cell::new(MAX_VALUES);
    let rows = Cell::new(MAX_ROWS);
    let seed = Seed { left: &left, rows: &rows, dropped, only: &[], list: of_rows, is_of_rows: false };
    let mut rest = text;
    let mut line = 0;
    let mut is_in_list = false;
    loop {
        let blank = rest.len() - rest.trim_start().len();
        line += rest[..blank].matches('\n').count();
        rest = &rest[blank..];
        if rest.is_empty() && is_in_list {
            return Err(ImportError::of_line(line, "the JSON is cut short here"));
        } else if rest.is_empty() {
            return Ok(found);
        }
        // Documents in a list, as `jq -s` writes them.
        if let Some(behind) = list_mark(rest, is_in_list) {
            is_in_list = !rest.starts_with(']');
            rest = behind;
            continue;
        }
        let is_object = rest.starts_with('{');
        let end = if is_object { object(rest) } else { rest.find('\n') };
        let part = &rest[..end.unwrap_or(rest.len())];
        // One that is cut short is not skipped: it is an error.
        let is_row = end.is_some() && of_rows.document.is_some_and(|begin| part.starts_with(begin));
        let is_skipped = is_row && found.rows > MAX_ROWS;
        found.rows += usize::from(is_row);
        if !is_object {
            if found.beside.len() < MAX_BESIDE {
                found.beside.push((found.documents.len(), part.trim_end().to_owned()));
            }
        } else if !is_skipped {
            let only = if is_row { of_rows.fields } else { &[] };
            found.documents.push(Seed { only, ..seed }.read(&without_nan(part), line)?);
        }
        line += part.matches('\n').count();
        rest = &rest[part.len()..];
    }
}

pub(super) fn document(text: &str) -> Result<Json, ImportError> {
    let left = Cell::new(MAX_VALUES);
    let rows = Cell::new(0);
    let dropped = &[];
    let only = &[];
    Seed { left: &left, rows: &rows, dropped, only, list: &NO_ROWS, is_of_rows: false }.read(text, 0)
}

/// What is behind the mark of a list of objects that a text begins with; `None` if it begins with none.
fn list_mark(text: &str, is_in_list: bool) -> Option<&str> {
    if is_in_list {
        return text.strip_prefix([',', ']']);
    }
    text.strip_prefix('[').filter(|behind| behind.trim_start().starts_with('{'))
}

/// Bytes of the object that a text begins with; `None` if it does not end.
fn object(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The text with null for numbers that are none: old versions of iperf3 print 0/0 as they find it.
fn without_nan(text: &str) -> Cow<'_, str> {
    if !text.contains("nan") && !text.contains("inf") {
        return Cow::Borrowed(text);
    }
    let mut result = text.to_owned();
    for none in [": -nan", ": nan", ": -inf", ": inf", ":-nan", ":nan", ":-inf", ":inf"] {
        for end in [",", "\n", "}", "\r"] {
            let found = format!("{none}{end}");
            if result.contains(&found) {
                result = result.replace(&found, &format!(": null{end}"));
            }
        }
    }
    result.into()
}

/// An error of a document, which begins after this many lines.
fn place_error(error: serde_json::Error, before: usize) -> ImportError {
    let text = error.to_string();
    // It says the place itself, after the reason.
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let reason = match error.classify() {
        serde_json::error::Category::Eof => "the JSON is cut short here".to_owned(),
        _ => reason.to_owned(),
    };
    ImportError::new(At::Column(before + error.line(), error.column()), reason)
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    left: &'a Cell<usize>,
    /// How many more rows of lists are kept.
    rows: &'a Cell<usize>,
    dropped: &'static [&'static str],
    /// The fields that are kept; empty for all.
    only: &'static [&'static str],
    list: &'a Rows,
    /// Whether the items of this list are rows: null where it has too many.
    is_of_rows: bool,
}

impl Seed<'_> {
    /// Reads a text, which begins after this many lines.
    fn read(self, text: &str, before: usize) -> Result<Json, ImportError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = self.deserialize(&mut reader);
        read.and_then(|node| reader.end().map(|()| node)).map_err(|error| place_error(error, before))
    }

    fn one<E: Error>(self, node: Json) -> Result<Json, E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| E::custom("it has too many values"))?;
        self.left.set(left);
        Ok(node)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        if self.is_of_rows { reader.deserialize_seq(self) } else { reader.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_of_rows { "a list" } else { "a JSON value" })
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        self.one(Json::Null)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Json, E> {
        self.one(Json::Bool(on))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        self.one(Json::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        self.one(Json::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        self.one(Json::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        self.one(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        let seed = Seed { is_of_rows: false, ..self };
        loop {
            if self.is_of_rows {
                let Some(left) = self.rows.get().checked_sub(1) else { break };
                self.rows.set(left);
            }
            match list.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return self.one(Json::List(items)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.one(Json::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let is_left_out = !self.only.is_empty() && !self.only.contains(&name.as_str());
            if is_left_out || self.dropped.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
            } else {
                let rows = Seed { only: self.list.fields, is_of_rows: true, ..self };
                let seed = if name == self.list.list { rows } else { self };
                fields.push((name, map.next_value_seed(seed)?));
            }
        }
        self.one(Json::Fields(fields))
    }
}
