//! `stacklab study`.

use crate::cli::study::StudyCommand;
use crate::commands::output::print_text;
use crate::failure::Failure;
use stacklab_campaign::sources::{PRESETS, StudySource, preset_names};
use stacklab_model::nearest;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A study that is small enough to be read at once.
const NEW: &str = include_str!("new_study.toml");

/// Lists or prints built-in studies, begins one, or prints the reference.
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
    print_text(&text)
}

fn show(name: &str) -> Result<(), Failure> {
    let preset = PRESETS.iter().find(|(known, _)| *known == name.trim_end_matches(".toml"));
    let Some((_, text)) = preset else {
        let names = preset_names();
        let advice = match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the built-in studies are {}", names.join(", ")),
        };
        return Err(Failure::Usage(format!("there is no built-in study `{name}`; {advice}")));
    };
    print_text(text)
}

fn new(file: &Path) -> Result<(), Failure> {
    let written = File::create_new(file).and_then(|mut created| created.write_all(NEW.as_bytes()));
    written.map_err(|reason| match reason.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{} exists already: name another file", file.display()))
        }
        _ => Failure::Output { what: file.display().to_string(), reason },
    })?;
    let file = file.display();
    eprintln!(
        "stacklab: {file} is written: change it, then `stacklab plan {file}` and `stacklab run {file}`"
    );
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
