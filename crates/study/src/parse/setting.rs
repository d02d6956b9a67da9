//! `--set KEY=VALUE`: one key of a study from the command line.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::check;
use crate::language::table::PARTIAL;
use crate::parse::tree::{self, Located, Table, TomlValue};

/// Reads a setting as a tree with that one key. KEY is a dotted path, VALUE is TOML; a bare word that is not (`ipv4`,
/// `1 Gbit/s`) is taken as text. What is wrong with it is added to the problems.
pub(crate) fn parse(setting: &str, problems: &mut Problems) -> Option<Table> {
    let option = if setting.starts_with("without=") { "--without" } else { "--set" };
    let source = problems.source(option, setting);
    let Some(equals) = setting.find('=') else {
        let all = Location { source, span: 0..setting.len() };
        problems.add(Problem::at(all, "this sets nothing", "expected KEY=VALUE, such as blocks.min=10"));
        return None;
    };
    let mut found = Problems::default();
    let table = match tree::parse(source, setting, &mut found) {
        Some(table) => table,
        None => bare_word(source, setting, equals).or_else(|| tree::parse(source, setting, problems))?,
    };
    check::table(&table, PARTIAL, "", problems);
    Some(table)
}

/// Reads KEY=VALUE with a value that is not TOML and does not begin like it.
fn bare_word(source: usize, setting: &str, equals: usize) -> Option<Table> {
    let value = setting[equals + 1..].trim();
    if value.is_empty() || value.starts_with(['[', '{', '"', '\'']) || value.contains('\n') {
        return None;
    }
    let start = setting.len() - setting[equals + 1..].trim_start().len();
    let place = Location { source, span: start..start + value.len() };
    let node = Located { value: TomlValue::Text(value.to_owned()), place };
    let mut table = tree::parse(source, &format!("{}=0", &setting[..equals]), &mut Problems::default())?;
    *innermost(&mut table)? = node;
    Some(table)
}

/// The value at the end of a chain of tables with one key each.
fn innermost(table: &mut Table) -> Option<&mut Located> {
    let node = &mut table.0.first_mut()?.node;
    match node.value {
        TomlValue::Table(ref mut inner) => innermost(inner),
        _ => Some(node),
    }
}
