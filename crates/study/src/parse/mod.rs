//! From text to a checked study.

pub(crate) mod layers;
pub(crate) mod setting;
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
const LONGEST_STUDY: usize = 1 << 20;

/// Reads and checks a study.
///
/// # Errors
/// All problems in one pass, each with its place.
pub fn parse(input: &Input) -> Result<Study, StudyErrors> {
    let mut problems = Problems::default();
    if input.text.len() > LONGEST_STUDY {
        let file = problems.source(input.name, "");
        let title = format!("the file has {} bytes", input.text.len());
        problems.add(Problem::at(Location::whole(file), title, format!("expected at most {LONGEST_STUDY}")));
        return Err(problems.into_errors());
    }
    let file = problems.source(input.name, input.text);
    let tree = tree::parse(file, input.text, &mut problems);
    let settings: Vec<Table> =
        input.settings.iter().filter_map(|setting| setting::parse(setting, &mut problems)).collect();
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
    without::apply(&mut tree, &mut problems);
    layers::complete(&mut tree, PARTIAL, "", &Location::whole(file), &mut problems);

    match read::study(&tree, &mut problems) {
        Some(study) if problems.is_empty() => Ok(study),
        _ => {
            if problems.is_empty() {
                problems.add(Problem::at(Location::whole(file), "cannot make a study of this", ""));
            }
            Err(problems.into_errors())
        }
    }
}

/// The scale of that name.
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
            let problem = Problem::at(place, format!("the study has no scale `{name}`"), expected);
            problems.add(problem.nearest(name, names));
            None
        }
    }
}

#[cfg(test)]
mod tests;
