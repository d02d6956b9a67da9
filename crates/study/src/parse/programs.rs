//! What a study with `[[program]]` tables does not say: their transport and their messages are their own.

use crate::diagnostics::{Location, Problem, Problems};
use crate::parse::tree::{KeyValue, Located, Table, TomlValue};

/// The factors that such a study does not have, as its cells have them all the same.
const NOT_NAMED: [&str; 3] = ["transport", "size_of", "size"];

/// Adds the factors of a study with `[[program]]` tables: its programs, unless it names them, and those that it does
/// not have.
pub(super) fn complete(tree: &mut Table, problems: &mut Problems) {
    let Some(programs) = tree.get("program").filter(|programs| !programs.items().is_empty()) else {
        // An empty list, as `--set program=[]` has it, is none.
        tree.take("program");
        return;
    };
    let place = programs.place.clone();
    let names: Vec<Located> = programs.items().iter().filter_map(|item| item.get("name")).cloned().collect();
    if let Some(TomlValue::List(also)) =
        tree.0.iter_mut().find(|entry| entry.name == "include").map(|entry| &mut entry.node.value)
    {
        for set in also {
            if let TomlValue::Table(levels) = &mut set.value {
                refuse(levels, &place, problems);
            }
        }
    }
    let Some(factors) = tree.0.iter_mut().find(|entry| entry.name == "factors") else { return };
    let TomlValue::Table(levels) = &mut factors.node.value else { return };
    refuse(levels, &place, problems);
    add(levels, "program", names, &place);
    for (name, value) in [("transport", TomlValue::Text("tcp".to_owned())), ("size", TomlValue::Integer(0))] {
        add(levels, name, vec![Located { value, place: place.clone() }], &place);
    }
}

/// Takes the factors out that programs do not have, and says so.
fn refuse(levels: &mut Table, programs: &Location, problems: &mut Problems) {
    for name in NOT_NAMED {
        let Some(at) = levels.0.iter().position(|entry| entry.name == name) else { continue };
        let entry = levels.0.remove(at);
        let title = format!("a study of programs has no factor `{name}`");
        let problem = Problem::at(&entry.name_place, title, "it is the programs' own");
        problems.add(problem.with_related_place(programs, "the programs"));
    }
}

fn add(levels: &mut Table, name: &str, items: Vec<Located>, place: &Location) {
    if levels.get(name).is_none() && !items.is_empty() {
        let node = Located { value: TomlValue::List(items), place: place.clone() };
        levels.0.push(KeyValue { name: name.to_owned(), name_place: place.clone(), node });
    }
}
