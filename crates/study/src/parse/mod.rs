//! From text to a checked study.

pub(crate) mod layers;
mod programs;
pub(crate) mod tree;
mod without;

use crate::diagnostics::{Location, Problem, Problems, StudyErrors};
use crate::language::check;
use crate::language::table::{PARTIAL, STUDY};
use crate::parse::tree::{Located, Table, TomlValue};
use crate::read;
use crate::study::Study;

/// The input of a study.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Name of the study file, as errors show it.
    pub name: &'a str,
    /// Text of the study file.
    pub text: &'a str,
    /// The scale to merge over the study, if one is requested.
    pub scale: Option<&'a str>,
    /// `KEY=VALUE` settings, merged over all else in this order. KEY is a dotted path such as `blocks.min`, VALUE is
    /// TOML; a bare word that is not (`1 Gbit/s`) counts as text.
    pub settings: &'a [String],
}

impl<'a> Input<'a> {
    /// A study file unchanged, without scale or settings.
    pub fn file(name: &'a str, text: &'a str) -> Self {
        Input { name, text, scale: None, settings: &[] }
    }
}

/// Longest study file, bytes: those of thousands of cells have some thousands.
const MAX_STUDY_LENGTH: usize = 1 << 20;

/// Reads and checks a study.
/// Fails with all problems, each with its place.
pub fn parse(input: &Input) -> Result<Study, StudyErrors> {
    let mut problems = Problems::default();
    if input.text.len() > MAX_STUDY_LENGTH {
        let file = problems.source(input.name, "");
        let title = format!("the file has {} bytes", input.text.len());
        problems.add(Problem::at(
            &Location::whole(file),
            title,
            format!("expected at most {MAX_STUDY_LENGTH}"),
        ));
        return Err(problems.into_errors());
    }
    let file = problems.source(input.name, input.text);
    let tree = tree::parse(file, input.text, &mut problems);
    let settings: Vec<Table> =
        input.settings.iter().filter_map(|setting| parse_setting(setting, &mut problems)).collect();
    // A file that is not TOML cannot be checked further.
    let Some(mut tree) = tree else { return Err(problems.into_errors()) };

    check::table(&tree, STUDY, "", &mut problems);
    let scales = tree.take("scale");
    if let Some(name) = input.scale
        && let Some(scale) = scale(scales, name, &mut problems)
    {
        layers::merge(&mut tree, scale, PARTIAL);
    }
    for setting in settings {
        layers::merge(&mut tree, setting, PARTIAL);
    }
    programs::complete(&mut tree, &mut problems);
    without::apply(&mut tree, &mut problems);
    layers::complete(&mut tree, PARTIAL, "", &Location::whole(file), &mut problems);

    match read::study(&tree, &mut problems) {
        Some(study) if problems.is_empty() => Ok(study),
        _ => {
            if problems.is_empty() {
                problems.add(Problem::at(&Location::whole(file), "cannot make a study of this", ""));
            }
            Err(problems.into_errors())
        }
    }
}

fn scale(scales: Option<Located>, name: &str, problems: &mut Problems) -> Option<Table> {
    let mut scales = match scales.map(|node| node.value) {
        Some(TomlValue::Table(scales)) => scales,
        _ => Table::default(),
    };
    match scales.take(name) {
        Some(Located { value: TomlValue::Table(scale), .. }) => Some(scale),
        // Not a table: reported already.
        Some(_) => None,
        None => {
            let names: Vec<&str> = scales.0.iter().map(|entry| entry.name.as_str()).collect();
            let expected = match names.as_slice() {
                [] => "the study file has no [scale.*] table".to_owned(),
                names => format!("expected one of {}", names.join(", ")),
            };
            let source = problems.source("--scale", name);
            let place = Location { source, span: 0..name.len() };
            let problem = Problem::at(&place, format!("the study has no scale `{name}`"), expected);
            problems.add(problem.nearest(name, names));
            None
        }
    }
}

/// Reads a setting as a tree with that one key. KEY is a dotted path, VALUE is TOML; a bare word that is not (`ipv4`,
/// `1 Gbit/s`) is taken as text. What is wrong with it is added to the problems.
fn parse_setting(setting: &str, problems: &mut Problems) -> Option<Table> {
    let option = if setting.starts_with("without=") { "--without" } else { "--set" };
    let source = problems.source(option, setting);
    let Some(equals) = setting.find('=') else {
        let all = Location { source, span: 0..setting.len() };
        problems.add(Problem::at(&all, "this sets nothing", "expected KEY=VALUE, such as blocks.min=10"));
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

#[cfg(test)]
mod tests;
