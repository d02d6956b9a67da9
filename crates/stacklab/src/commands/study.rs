//! `stacklab study`, and the options that choose a study.

use crate::failure::Failure;
use crate::output::{print_lines, print_text};
use clap::{Args, Subcommand};
use stacklab_campaign::CampaignError;
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::{PRESETS, StudySource, preset_names};
use stacklab_guests::Placement;
use stacklab_model::{nearest, quote_file};
use stacklab_study::Study;
use std::fs::{File, remove_file};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the built-in studies
    List,
    /// Print a built-in study with its comments, as a template
    Show {
        /// Its name, as `list` prints it
        #[arg(value_name = "STUDY")]
        name: String,
    },
    /// Write a small study to change
    New {
        /// The file, which must not exist
        #[arg(value_name = "FILE", default_value = "study.toml")]
        file: PathBuf,
    },
    /// Print the reference of study files (docs/study.md): every key, level, probe and metric
    Reference,
}

/// Which study, and how it is changed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StudyOptions {
    /// Study file, or built-in study: quickstart, stacks, mechanisms and others (see: stacklab study list), or a
    /// published one (see: stacklab reference list); default: quickstart
    #[arg(value_name = "STUDY")]
    pub study: Option<PathBuf>,
    /// Effort: quick, standard or paper, a table of that name in the study
    #[arg(long, value_name = "SCALE")]
    pub scale: Option<String>,
    /// Seed of the plan's random order; default: a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the study, for example blocks.min=20; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Leave out a level, such as linux-6.12, and the comparisons that need it; may be repeated
    #[arg(long, value_name = "LEVEL")]
    pub without: Vec<String>,
    /// The text of a study without a file.
    #[arg(skip)]
    pub source: Option<StudySource>,
}

impl StudyOptions {
    /// The settings, with the one that leaves levels out.
    pub(crate) fn all_settings(&self) -> Vec<String> {
        let without = (!self.without.is_empty()).then(|| format!("without={:?}", self.without));
        self.settings.iter().cloned().chain(without).collect()
    }

    /// The text of the study that they name.
    pub(crate) fn source(&self) -> Result<StudySource, CampaignError> {
        self.source.clone().map_or_else(|| StudySource::read(self.study.as_deref()), Ok)
    }

    /// The study that they name, checked.
    pub(crate) fn check(&self) -> Result<(StudySource, Study), CampaignError> {
        let source = self.source()?;
        let study = source.check(self.scale.as_deref(), &self.all_settings())?;
        Ok((source, study))
    }
}

/// Where the testbeds of a study with routers are.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlacementOptions {
    /// Build the whole testbed of a study with routers inside a guest: the fastest
    /// installed one, or the one named (uml, uml-NAME, linux-6.1 ..). Default: only if this kernel lacks
    /// a module
    #[arg(long, value_name = "GUEST", num_args = 0..=1, require_equals = true, default_value = "where-needed",
        default_missing_value = "any", hide_default_value = true)]
    pub in_vm: Placement,
}

impl Default for PlacementOptions {
    fn default() -> Self {
        PlacementOptions { in_vm: Placement::WhereNeeded }
    }
}

/// A study that is small enough to be read at once.
const NEW: &str = include_str!("new_study.toml");

pub(crate) fn study(command: &StudyCommand) -> Result<(), Failure> {
    match command {
        StudyCommand::List => list(),
        StudyCommand::Show { name } => show(name),
        StudyCommand::New { file } => new(file),
        StudyCommand::Reference => print_text(&stacklab_study::reference()),
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for (name, study) in PRESETS {
        let source = StudySource { name: format!("{name}.toml"), text: study.to_owned() };
        text += &format!("{name:<18}{}\n", source.check(None, &[])?.title);
    }
    print_lines(&text)
}

fn show(name: &str) -> Result<(), Failure> {
    let preset = PRESETS.iter().find(|(known, _)| *known == name.trim_end_matches(".toml"));
    let Some((_, text)) = preset else {
        let names = preset_names();
        let advice = match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the built-in studies are {}", names.join(", ")),
        };
        return Err(Failure::usage(format!("there is no built-in study `{name}`; {advice}")));
    };
    print_text(text)
}

fn new(file: &Path) -> Result<(), Failure> {
    let mut created = File::create_new(file).map_err(|reason| match reason.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists already: name another file", file.display()))
        }
        _ => Failure::step(format!("write {}", file.display()))(reason),
    })?;
    created.write_all(NEW.as_bytes()).map_err(|reason| {
        // On a full disk nothing stays of it, or the next try would find a file.
        let _ = remove_file(file);
        Failure::step(format!("write {}", file.display()))(reason)
    })?;
    let word = quote_file(file);
    note(&format!(
        "stacklab: {} is written: change it, then `stacklab plan {word}` and `stacklab run {word}`",
        file.display()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_study_is_one_that_runs() {
        let source = StudySource { name: "new.toml".to_owned(), text: NEW.to_owned() };
        let study = source.check(None, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert!(!study.questions().is_empty());
    }
}
