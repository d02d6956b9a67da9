//! Checks a tree against the language: unknown keys, kinds of values, duplicates. Missing keys are checked
//! later, in the merged study ([`crate::parse::layers`]), because a scale or `--set` may supply it.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::language::table::PARTIAL;
use crate::language::{KeyDef, Kind};
use crate::parse::tree::{KeyValue, Located, Table, TomlValue};
use stacklab_model::renamed_key;
use std::collections::HashMap;
use std::ptr;

/// Reports every difference of a table from the language. `path` is its dotted name, empty for a whole file.
pub(crate) fn table(table: &Table, keys: &[KeyDef], path: &str, problems: &mut Problems) {
    for entry in &table.0 {
        let path = join(path, &entry.name);
        match keys.iter().find(|key| key.name == entry.name) {
            None => match renamed_key(&path) {
                Some(new) => check_old_key(entry, new, keys, &path, problems),
                None => problems.add(unknown_key(&entry.name_place, &entry.name, keys, &path)),
            },
            Some(KeyDef { kind: Kind::Refused(why), .. }) => {
                problems.add(Problem::at(&entry.name_place, format!("`{path}` has no meaning"), *why));
            }
            Some(key) => value(&entry.node, &key.kind, &path, problems),
        }
    }
}

fn value(node: &Located, kind: &Kind, path: &str, problems: &mut Problems) {
    let mut wrong = |expected: String| {
        problems.add(Problem::at(&node.place, format!("cannot use this value for `{path}`"), expected));
    };
    match kind {
        Kind::Table(keys) | Kind::SomeOf(keys) => match node.table() {
            Some(inner) => table(inner, keys, path, problems),
            None => wrong(format!("expected a table: [{path}]")),
        },
        Kind::Part => value(node, &Kind::Table(PARTIAL), path, problems),
        Kind::OneOf(keys) => match node.table() {
            Some(inner) if inner.0.len() == 1 => table(inner, keys, path, problems),
            _ => {
                let names = keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
                wrong(format!(
                    "expected a table with exactly one of {names}, such as {{ time = \"200ms\" }}"
                ));
            }
        },
        Kind::Tables(keys) => match &node.value {
            TomlValue::List(items) => {
                for item in items {
                    value(item, &Kind::Table(keys), path, problems);
                }
            }
            _ => wrong(format!("expected tables in a list: [[{path}]]")),
        },
        Kind::List(of) => match &node.value {
            TomlValue::List(items) if !items.is_empty() => {
                for item in items {
                    value(item, of, path, problems);
                }
                repetitions(items, path, problems);
            }
            TomlValue::List(_) => wrong("expected at least one item".to_owned()),
            _ => wrong("expected a list in brackets: [a, b]".to_owned()),
        },
        single => {
            if let Err(misfit) = leaf::check(node, single) {
                problems.add(misfit.problem(node, path));
            }
        }
    }
}

fn repetitions(items: &[Located], path: &str, problems: &mut Problems) {
    let mut seen: HashMap<String, &Located> = HashMap::new();
    for item in items {
        let Ok(level) = leaf::level(item) else { continue };
        let title = format!("`{level}` occurs twice in `{path}`");
        let first = seen.entry(level).or_insert(item);
        if !ptr::eq(*first, item) {
            problems.add(
                Problem::at(&item.place, title, "again here").with_related_place(&first.place, "first here"),
            );
        }
    }
}

/// A key of before the first release. Its value is checked as that of the present key.
fn check_old_key(entry: &KeyValue, new: &str, keys: &[KeyDef], path: &str, problems: &mut Problems) {
    let title = format!("`{path}` was renamed to `{new}`");
    problems.add(Problem::at(&entry.name_place, title, format!("write {new}")));
    if let Some(key) = keys.iter().find(|key| key.name == new) {
        let path = path.rsplit_once('.').map_or(new.to_owned(), |(table, _)| join(table, new));
        value(&entry.node, &key.kind, &path, problems);
    }
}

/// A key that a table does not have: lists the table's keys, and the nearest of them.
fn unknown_key(place: &Location, name: &str, keys: &[KeyDef], path: &str) -> Problem {
    let known: Vec<&str> = keys.iter().filter(|key| !key.is_out_of_place()).map(|key| key.name).collect();
    let expected = leaf::expected_one_of(name, &known);
    Problem::at(place, format!("there is no key `{path}`"), expected).nearest(name, known.iter().copied())
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
