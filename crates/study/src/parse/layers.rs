//! A study's layers: defaults, file, scale, `--set`; each is merged over the previous one.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::check::join;
use crate::language::{KeyDef, Kind, Presence};
use crate::parse::tree::{self, KeyValue, Located, Table, TomlValue};

/// Merges a table over another: tables are merged, all other values replaced.
pub(crate) fn merge(under: &mut Table, over: Table, keys: &[KeyDef]) {
    for entry in over.0 {
        let kind = keys.iter().find(|key| key.name == entry.name).map(|key| key.kind);
        let inner_keys = kind.and_then(|kind| kind.merged_keys());
        match (under.0.iter_mut().find(|known| known.name == entry.name), inner_keys) {
            (Some(known), Some(inner_keys)) => match (&mut known.node.value, entry.node.value) {
                (TomlValue::Table(below), TomlValue::Table(above)) => merge(below, above, inner_keys),
                (below, above) => {
                    *below = above;
                    known.node.place = entry.node.place;
                }
            },
            (Some(known), None) => *known = entry,
            (None, _) => under.0.push(entry),
        }
    }
}

/// Fills in the defaults of every table present, and reports missing keys.
pub(crate) fn complete(
    table: &mut Table,
    keys: &[KeyDef],
    path: &str,
    place: &Location,
    problems: &mut Problems,
) {
    for key in keys {
        let path = join(path, key.name);
        if table.get(key.name).is_none() {
            match key.presence {
                Presence::Default(text) => table.0.extend(default(key.name, &path, text, problems)),
                Presence::Required => problems.add(missing(&path, key, place)),
                Presence::Optional => {}
            }
        }
        let Some(entry) = table.0.iter_mut().find(|entry| entry.name == key.name) else { continue };
        let Located { value, place } = &mut entry.node;
        match (key.kind, value) {
            (Kind::Table(keys), TomlValue::Table(inner)) => complete(inner, keys, &path, place, problems),
            (Kind::SomeOf(keys), TomlValue::Table(inner)) => {
                if inner.0.is_empty() {
                    let names = keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
                    let expected = format!("expected at least one of {names}");
                    problems.add(Problem::at(place, format!("`{path}` is empty"), expected));
                }
                complete(inner, keys, &path, place, problems);
            }
            (Kind::Tables(keys), TomlValue::List(items)) => {
                for Located { value, place } in items {
                    if let TomlValue::Table(inner) = value {
                        complete(inner, keys, &path, place, problems);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A default as a separate source, to show it in errors that involve it.
fn default(name: &str, path: &str, text: &str, problems: &mut Problems) -> Option<KeyValue> {
    let text = format!("{name} = {text}");
    let source = problems.source(format!("default of {path}"), text.as_str());
    tree::parse(source, &text, problems)?.0.pop()
}

fn missing(path: &str, key: &KeyDef, place: &Location) -> Problem {
    let expected = match path.rsplit_once('.') {
        Some((table, name)) => format!("expected a key `{name}` in `{table}`"),
        None => format!("expected a key `{path}` in this file"),
    };
    Problem::at(place, format!("`{path}` is missing"), expected).help(key.description())
}
