//! Where studies come from and records go.

use crate::cli::StudyOptions;
use crate::failure::Failure;
use stacklab_study::{Input, Study};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The built-in study.
const QUICKSTART: (&str, &str) = ("quickstart.toml", include_str!("../../../studies/quickstart.toml"));
/// The ending of records' names.
const ENDING: &str = "stacklab";

/// A study's text with its name.
pub struct StudySource {
    /// The file's name, as errors show it.
    pub name: String,
    /// The text.
    pub text: String,
}

impl StudySource {
    /// Reads the study that was asked for, or takes the built-in one.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(StudySource { name: QUICKSTART.0.to_owned(), text: QUICKSTART.1.to_owned() });
        };
        let text = std::fs::read_to_string(path)
            .map_err(|reason| Failure::StudyFile { path: path.to_owned(), reason })?;
        Ok(StudySource { name: path.display().to_string(), text })
    }

    /// Checks it with a scale and settings.
    pub fn check(&self, scale: Option<&str>, settings: &[String]) -> Result<Study, Failure> {
        Ok(stacklab_study::parse(&Input { name: &self.name, text: &self.text, scale, settings })?)
    }
}

/// The study that options ask for, checked.
pub fn study_of(options: &StudyOptions) -> Result<(StudySource, Study), Failure> {
    let source = StudySource::read(options.study.as_deref())?;
    let study = source.check(options.scale.as_deref(), &options.settings)?;
    Ok((source, study))
}

/// Nanoseconds since the Unix epoch.
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// A seed for who names none: any number will do, since it is recorded; short enough to be typed.
pub fn new_seed() -> u64 {
    now_unix_ns() / 1000 % 1_000_000
}

/// The name of a new record in this folder: study and time.
pub fn new_record(study: &str) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    PathBuf::from(format!("{}-{time}.{ENDING}", stem(study)))
}

/// The newest record in this folder, of any study or of the one named.
pub fn newest_record(study: Option<&Path>) -> Result<PathBuf, Failure> {
    let nothing = |reason: String| {
        Failure::Usage(format!("there is nothing to resume: {reason}; name the record with --out"))
    };
    let files =
        std::fs::read_dir(".").map_err(|error| nothing(format!("this folder cannot be read: {error}")))?;
    let prefix = study.map(|study| format!("{}-", stem(&study.display().to_string())));
    let records = files.flatten().map(|file| PathBuf::from(file.file_name())).filter(|path| {
        let name = path.display().to_string();
        path.extension().is_some_and(|ending| ending == ENDING)
            && prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix.as_str()))
    });
    let modified = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(UNIX_EPOCH);
    records
        .max_by_key(modified)
        .ok_or_else(|| nothing(format!("this folder holds no *.{ENDING} file of that study")))
}

fn stem(study: &str) -> String {
    Path::new(study)
        .file_stem()
        .map_or_else(|| "study".to_owned(), |stem| stem.to_string_lossy().into_owned())
}
