//! A study file as a tree of values with their source locations.

use crate::diagnostics::{Location, Problem, Problems};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub value: TomlValue,
    pub place: Location,
}

#[derive(Debug, Clone)]
pub(crate) enum TomlValue {
    Text(String),
    /// Saturated at 128 bits, which is out of any bounds.
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date,
    List(Vec<Located>),
    Table(Table),
}

/// Keys and values, in alphabetical order as the TOML parser gives them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(pub Vec<KeyValue>);

#[derive(Debug, Clone)]
pub(crate) struct KeyValue {
    pub name: String,
    pub name_place: Location,
    pub node: Located,
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&Located> {
        self.0.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Located> {
        let index = self.0.iter().position(|entry| entry.name == name)?;
        Some(self.0.remove(index).node)
    }
}

impl Located {
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            TomlValue::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Located> {
        self.table()?.get(name)
    }

    pub(crate) fn path(&self, path: &str) -> Option<&Located> {
        path.split('.').try_fold(self, |node, name| node.get(name))
    }

    /// The items, if this is a list; otherwise none.
    pub(crate) fn items(&self) -> &[Located] {
        match &self.value {
            TomlValue::List(items) => items,
            _ => &[],
        }
    }
}

/// Reads a TOML document, the text of the given source. All its syntax errors are added to the problems.
pub(crate) fn parse(source: usize, text: &str, problems: &mut Problems) -> Option<Table> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let wrong = !errors.is_empty();
    // After one mistake the parser reports follow-up errors; only the first few are useful.
    for error in errors.into_iter().take(3) {
        let span = error.span().unwrap_or(0..0);
        let word = text.get(span.clone()).unwrap_or("");
        let place = Location { source, span };
        let (reason, expected) = match error.message().split_once(", expected ") {
            Some(("string values must be quoted", _)) if word.is_empty() => {
                ("there is no value", "expected a value".to_owned())
            }
            Some((reason, _)) if is_bare_word(reason, word) => match word.to_lowercase().as_str() {
                boolean @ ("true" | "false") => (reason, format!("expected {boolean}")),
                _ => ("text must be in quotes", format!("expected \"{word}\"")),
            },
            Some((reason, expected)) => (reason, format!("expected {expected}")),
            None => (error.message(), String::new()),
        };
        problems.add(Problem::at(&place, format!("not TOML: {reason}"), expected));
    }
    if wrong { None } else { Some(convert_table(source, table.get_ref())) }
}

/// Whether text was written without quotes; in that case the parser, seeing `i` or `t`, reports a wrong `inf` or
/// `true`.
fn is_bare_word(reason: &str, word: &str) -> bool {
    reason == "string values must be quoted"
        || (reason.starts_with("invalid") && word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn convert_table(source: usize, table: &DeTable) -> Table {
    let entries = table.iter().map(|(name, value)| KeyValue {
        name: name.get_ref().to_string(),
        name_place: Location { source, span: name.span() },
        node: convert(source, value),
    });
    Table(entries.collect())
}

fn convert(source: usize, value: &Spanned<DeValue>) -> Located {
    let place = Location { source, span: value.span() };
    let value = match value.get_ref() {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Integer(integer) => TomlValue::Integer(whole(integer.as_str(), integer.radix())),
        // The parser has checked it; if it does not parse all the same, NaN is out of any bounds.
        DeValue::Float(float) => TomlValue::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => TomlValue::Boolean(*boolean),
        DeValue::Datetime(_) => TomlValue::Date,
        DeValue::Array(items) => TomlValue::List(items.iter().map(|item| convert(source, item)).collect()),
        DeValue::Table(table) => TomlValue::Table(convert_table(source, table)),
    };
    Located { value, place }
}

fn whole(digits: &str, radix: u32) -> i128 {
    let out_of_bounds = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(digits, radix).unwrap_or(out_of_bounds)
}
