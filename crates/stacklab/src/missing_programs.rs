//! Programs of a study whose files are not on this machine: they are left out of a run, with what compares them.

use crate::commands::study::StudyOptions;
use crate::failure::{Failure, TESTBED};
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::StudySource;
use stacklab_model::once_each;
use stacklab_study::Study;
use stacklab_testbed::is_found_by_commands;

/// A study without the programs that cannot run here, and the settings that make it so.
pub(crate) struct RunnableStudy {
    pub source: StudySource,
    pub study: Study,
    pub settings: Vec<String>,
    /// What was left out, and why: a line for all programs that need the same files.
    pub left_out: Vec<String>,
}

impl RunnableStudy {
    /// Refuses to leave out what a verdict over all comparisons would have to know.
    pub(crate) fn refuse_left_out(&self) -> Result<(), Failure> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        Err(Failure::new(
            TESTBED,
            format!(
                "--fail-on would pass without the comparisons of what is missing: {}: install it, or leave it out \
                 by --without",
                self.left_out.join("; ")
            ),
        ))
    }
}

/// Says on standard error what was left out, once nothing else refuses the study.
pub(crate) fn report_left_out(left_out: &[String]) {
    for line in left_out {
        note(&format!("stacklab: {line}: left out"));
    }
}

/// A program that cannot run here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MissingProgram {
    name: String,
    /// What it needs and is not here.
    files: Vec<String>,
}

/// Checks the study that these options name, and leaves out what is not installed.
pub(crate) fn check_runnable(options: &StudyOptions) -> Result<RunnableStudy, Failure> {
    // Read once: it may be a pipe.
    let source = options.source()?;
    let study = source.check(options.scale.as_deref(), &options.all_settings())?;
    let missing = list_missing(&study, is_found_by_commands);
    let left_out = describe(&missing);
    if missing.is_empty() {
        return Ok(RunnableStudy { source, study, settings: options.all_settings(), left_out });
    }
    let measured = once_each(study.cells.iter().filter_map(|cell| cell.settings.program.clone()));
    if missing.len() == measured.len() {
        let reasons = left_out.join("; ");
        return Err(Failure::new(TESTBED, format!("no program of this study can run: {reasons}")));
    }
    if options.settings.iter().any(|setting| setting.trim_start().starts_with("without")) {
        return Err(Failure::usage(format!(
            "{}: leave them out by the same --set without=[..], or by --without",
            left_out.join("; ")
        )));
    }
    let mut without = options.clone();
    without.without.extend(missing.into_iter().map(|program| program.name));
    let settings = without.all_settings();
    let study = source.check(options.scale.as_deref(), &settings)?;
    Ok(RunnableStudy { source, study, settings, left_out })
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
        let subject = if names.len() == 1 { "program" } else { "programs" };
        let verb = if names.len() == 1 { "needs" } else { "need" };
        lines.push(format!("{subject} {} {verb} {}", names.join(", "), describe_files(files)));
    }
    lines
}

/// `caddy, which is not in PATH, and ./key.pem, which is not there`.
fn describe_files(files: &[String]) -> String {
    let mut parts = Vec::new();
    for (place, is_path) in [("in PATH", false), ("there", true)] {
        let found: Vec<&str> =
            files.iter().map(String::as_str).filter(|file| file.contains('/') == is_path).collect();
        if !found.is_empty() {
            let verb = if found.len() == 1 { "is" } else { "are" };
            parts.push(format!("{}, which {verb} not {place}", found.join(" and ")));
        }
    }
    parts.join(", and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_testbed::first_line_of_command;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

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
    fn missing_paths_are_not_there() {
        let files = ["caddy", "/a/key.pem", "curl", "/a/cert.pem"].map(str::to_owned);
        assert_eq!(describe_files(&files[1..2]), "/a/key.pem, which is not there");
        assert_eq!(
            describe_files(&files),
            "caddy and curl, which are not in PATH, and /a/key.pem and /a/cert.pem, which are not there"
        );
    }

    /// A study of `[[program]]` tables that need these files.
    fn read_with_needs(needs: &[&str]) -> StudyOptions {
        let mut text = "title = \"Programs\"\n".to_owned();
        for (number, file) in needs.iter().enumerate() {
            text += &format!(
                "[[program]]\nname = \"p{number}\"\nserver = \"a\"\nclient = \"b\"\nneeds = [{file:?}]\n"
            );
        }
        text += "[factors]\nfamily = [\"ipv4\", \"ipv6\"]\n[probe.program]\nmetrics = [\"duration\"]\n";
        text += "[[comparison]]\nfactor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"\n";
        let source = Some(StudySource { name: "x".to_owned(), text });
        StudyOptions { source, ..StudyOptions::default() }
    }

    #[test]
    fn what_is_left_out_is_refused_for_a_verdict() {
        let runnable = check_runnable(&read_with_needs(&["sh", "./Cargo.toml"])).unwrap();
        assert_eq!((runnable.study.cells.len(), runnable.left_out.len()), (4, 0));
        assert!(runnable.refuse_left_out().is_ok());
        let runnable = check_runnable(&read_with_needs(&["sh", "./none.pem"])).unwrap();
        assert_eq!(runnable.study.cells.len(), 2);
        assert_eq!(runnable.settings, ["without=[\"p1\"]"]);
        let failure = runnable.refuse_left_out().unwrap_err();
        let reason = failure.printable_reason();
        assert!(reason.contains("p1 needs ./none.pem, which is not there"), "{reason}");
        assert!(reason.contains("--fail-on"), "{reason}");
        let Err(failure) = check_runnable(&read_with_needs(&["./none.pem"])) else { panic!("none can run") };
        assert!(failure.printable_reason().contains("no program"), "{failure:?}");
    }

    /// A folder of programs that each print a version, the only ones in PATH.
    fn write_programs(needs: &[String]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in needs {
            let file = folder.path().join(name);
            fs::write(&file, "#!/bin/sh\necho fake 1.2\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn ask_version(command: &str) -> Result<String, String> {
        first_line_of_command(command, Duration::from_secs(60), || false)
    }

    #[test]
    fn version_commands_fail_without_their_programs() {
        let mut asked = 0;
        for program in &read_quic().programs {
            let version = program.version.as_ref().unwrap();
            let folder = write_programs(&program.needs);
            let command = format!("PATH={}; {version}", folder.path().display());
            assert!(ask_version(&command).is_ok_and(|line| line.contains("fake 1.2")), "{}", program.name);
            for file in program.needs.iter().filter(|file| version.contains(file.as_str())) {
                fs::rename(folder.path().join(file), folder.path().join("away")).unwrap();
                assert!(ask_version(&command).is_err(), "{} without {file}", program.name);
                fs::rename(folder.path().join("away"), folder.path().join(file)).unwrap();
                asked += 1;
            }
        }
        assert_eq!(asked, 12);
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
