//! Programs of a study whose files are not on this machine: they are left out of a run, with what compares them.

use crate::commands::study::StudyOptions;
use crate::failure::{Failure, TESTBED};
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::StudySource;
use stacklab_model::once_each;
use stacklab_study::Study;
use stacklab_testbed::program_in_path;

/// A study without the programs that cannot run here, and the settings that make it so.
pub(crate) struct RunnableStudy {
    pub source: StudySource,
    pub study: Study,
    pub settings: Vec<String>,
}

/// A program that cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MissingProgram {
    name: String,
    /// What it needs and is not here.
    files: Vec<String>,
}

/// Checks the study that these options name, leaves out what is not installed, and says so.
pub(crate) fn check_runnable(options: &StudyOptions) -> Result<RunnableStudy, Failure> {
    // Read once: it may be a pipe.
    let source = options.source()?;
    let study = source.check(options.scale.as_deref(), &options.all_settings())?;
    let missing = list_missing(&study, |file| program_in_path(file).is_some());
    if missing.is_empty() {
        return Ok(RunnableStudy { source, study, settings: options.all_settings() });
    }
    let what = describe(&missing);
    let measured = once_each(study.cells.iter().filter_map(|cell| cell.settings.program.clone()));
    if missing.len() == measured.len() {
        return Err(Failure::new(TESTBED, format!("no program of this study can run: {}", what.join("; "))));
    }
    if options.settings.iter().any(|setting| setting.trim_start().starts_with("without")) {
        return Err(Failure::usage(format!(
            "{}: leave them out by the same --set without=[..], or by --without",
            what.join("; ")
        )));
    }
    for one in what {
        note(&format!("stacklab: {one}: left out"));
    }
    let mut without = options.clone();
    without.without.extend(missing.into_iter().map(|program| program.name));
    let settings = without.all_settings();
    let study = source.check(options.scale.as_deref(), &settings)?;
    Ok(RunnableStudy { source, study, settings })
}

/// The programs of a study's cells that need a file which is not here.
fn list_missing(study: &Study, is_here: impl Fn(&str) -> bool) -> Vec<MissingProgram> {
    let mut missing = Vec::new();
    for program in &study.programs {
        let is_measured = study.cells.iter().any(|cell| study.program_of(cell) == Some(program));
        let files: Vec<String> = program.needs.iter().filter(|file| !is_here(file)).cloned().collect();
        if is_measured && !files.is_empty() {
            missing.push(MissingProgram { name: program.name.clone(), files });
        }
    }
    missing
}

/// `programs http1, http2 need caddy, which is not in PATH`, for each of the files that are missing together.
fn describe(missing: &[MissingProgram]) -> Vec<String> {
    let mut lines = Vec::new();
    for files in once_each(missing.iter().map(|program| &program.files)) {
        let with_them = missing.iter().filter(|program| program.files == *files);
        let names: Vec<&str> = with_them.map(|program| program.name.as_str()).collect();
        let (what, needs) = if names.len() == 1 { ("program", "needs") } else { ("programs", "need") };
        let verb = if files.len() == 1 { "is" } else { "are" };
        lines.push(format!(
            "{what} {} {needs} {}, which {verb} not in PATH",
            names.join(", "),
            files.join(" and ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read_quic() -> Study {
        StudySource::read(Some(Path::new("quic"))).unwrap().check(None, &[]).unwrap()
    }

    fn missing_without(files: &[&str]) -> Vec<MissingProgram> {
        list_missing(&read_quic(), |file| !files.contains(&file))
    }

    #[test]
    fn programs_without_their_files_are_named() {
        assert!(missing_without(&[]).is_empty());
        let lines = describe(&missing_without(&["caddy", "nginx"]));
        assert_eq!(
            lines,
            [
                "programs http1, http2, http3 need caddy, which is not in PATH",
                "programs nginx1, nginx2 need nginx, which is not in PATH"
            ]
        );
        let all = missing_without(&["stacklab-quic", "openssl", "curl"]);
        assert_eq!(all.len(), 7);
        assert_eq!(describe(&all)[0], "programs tls, quic need stacklab-quic, which is not in PATH");
        assert!(describe(&all)[1].ends_with("need openssl and stacklab-quic, which are not in PATH"));
    }

    #[test]
    fn a_study_is_valid_without_what_is_missing() {
        for files in [&["caddy"][..], &["nginx"], &["stacklab-quic"], &["caddy", "nginx"]] {
            let names: Vec<String> = missing_without(files).into_iter().map(|program| program.name).collect();
            let options = StudyOptions {
                study: Some("quic".into()),
                without: names.clone(),
                ..StudyOptions::default()
            };
            let (_, study) = options.check().unwrap_or_else(|error| panic!("{files:?}: {error}"));
            assert!(!names.is_empty() && study.cells.len() == 2 * (7 - names.len()), "{files:?}");
        }
    }
}
