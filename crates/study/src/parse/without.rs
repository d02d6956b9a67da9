//! `without`: levels of factors that are left out, with the comparisons that need them.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::check::join;
use crate::language::leaf;
use crate::parse::tree::{Located, Table, TomlValue};
use std::collections::BTreeSet;

/// Removes the levels that `without` lists from a merged study.
pub(crate) fn apply(tree: &mut Table, problems: &mut Problems) {
    let Some(without) = tree.take("without") else { return };
    let compared = tables(tree, "comparison").len();
    for node in without.items() {
        // What is not a level has been reported.
        let Some(level) = text(node) else { continue };
        leave_out(tree, &level, &node.place, problems);
    }
    if compared > 0 && tables(tree, "comparison").is_empty() {
        problems.add(
            Problem::at(&without.place, "nothing is left to compare", "every comparison needs one of these")
                .help("leave out fewer levels, or add --set comparison=[]"),
        );
    }
}

fn leave_out(tree: &mut Table, level: &str, place: &Location, problems: &mut Problems) {
    let mut factors = Vec::new();
    let known = levels(tree);
    if let Some(TomlValue::Table(table)) = value(tree, "factors") {
        remove(table, "", level, &mut |factor, is_last| {
            if is_last {
                let title = format!("factor {factor} has no level left");
                problems.add(Problem::at(place, title, "its last one"));
            }
            factors.push(factor);
        });
    }
    if let Some(TomlValue::List(also)) = value(tree, "include") {
        also.retain_mut(|set| {
            let TomlValue::Table(table) = &mut set.value else { return true };
            let mut is_empty = false;
            remove(table, "", level, &mut |factor, is_last| {
                factors.push(factor);
                is_empty |= is_last;
            });
            !is_empty
        });
    }
    if factors.is_empty() {
        let expected = format!("expected one of {}", known.join(", "));
        let problem = Problem::at(place, format!("the study has no level `{level}`"), expected);
        problems.add(problem.nearest(level, known.iter().map(String::as_str)));
    }
    if let Some(TomlValue::List(comparisons)) = value(tree, "comparison") {
        comparisons.retain(|comparison| {
            let factor = comparison.get("factor").and_then(text);
            let is_varied = factor.is_some_and(|factor| factors.contains(&factor));
            let levels = ["baseline", "candidate"].map(|key| comparison.get(key).and_then(text));
            !(is_varied && levels.iter().flatten().any(|found| found == level))
        });
    }
}

/// Removes a level from all lists of a table and of those in it. `found` is called with the factor of each list that
/// had it, and whether it was the last.
fn remove(table: &mut Table, path: &str, level: &str, found: &mut impl FnMut(String, bool)) {
    for entry in &mut table.0 {
        let path = join(path, &entry.name);
        match &mut entry.node.value {
            TomlValue::Table(inner) => remove(inner, &path, level, found),
            TomlValue::List(items) => {
                let before = items.len();
                items.retain(|item| text(item).is_none_or(|item| item != level));
                if items.len() < before {
                    found(path, items.is_empty());
                }
            }
            _ => {}
        }
    }
}

fn levels(tree: &Table) -> Vec<String> {
    fn collect(node: &Located, levels: &mut BTreeSet<String>) {
        match &node.value {
            TomlValue::Table(inner) => inner.0.iter().for_each(|entry| collect(&entry.node, levels)),
            TomlValue::List(items) => levels.extend(items.iter().filter_map(text)),
            _ => {}
        }
    }
    let mut levels = BTreeSet::new();
    let sets = tree.get("factors").into_iter().chain(tables(tree, "include"));
    sets.for_each(|set| collect(set, &mut levels));
    levels.into_iter().collect()
}

fn tables<'a>(tree: &'a Table, name: &str) -> &'a [Located] {
    tree.get(name).map_or(&[], Located::items)
}

fn value<'a>(tree: &'a mut Table, name: &str) -> Option<&'a mut TomlValue> {
    tree.0.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.node.value)
}

/// A level as text: sizes are numbers, switches are booleans.
fn text(node: &Located) -> Option<String> {
    leaf::level(node).ok()
}
