//! Sources of studies and names of records.

use crate::CampaignError;
use stacklab_model::{CpuScope, nearest};
use stacklab_store::Campaign;
use stacklab_study::{Input, Study};
use stacklab_traffic::host::files::read_text_file;
use stacklab_traffic::host::now_unix_ns;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Built-in studies, which run by name from any folder: all files of studies/.
pub const PRESETS: [(&str, &str); 25] = [
    (QUICKSTART, include_str!("../studies/quickstart.toml")),
    ("stacks", include_str!("../studies/stacks.toml")),
    ("mechanisms", include_str!("../studies/mechanisms.toml")),
    ("nat", include_str!("../studies/nat.toml")),
    ("overlays", include_str!("../studies/overlays.toml")),
    ("containers", include_str!("../studies/containers.toml")),
    ("firewall", include_str!("../studies/firewall.toml")),
    ("tables", include_str!("../studies/tables.toml")),
    ("memory", include_str!("../studies/memory.toml")),
    ("ipv4aas", include_str!("../studies/ipv4aas.toml")),
    ("search", include_str!("../studies/search.toml")),
    ("search-translators", include_str!("../studies/search-translators.toml")),
    ("search-ipv4aas", include_str!("../studies/search-ipv4aas.toml")),
    ("search-connections", include_str!("../studies/search-connections.toml")),
    ("rfc8219", include_str!("../studies/rfc8219.toml")),
    ("mapped", include_str!("../studies/mapped.toml")),
    ("generators", include_str!("../studies/generators.toml")),
    ("programs", include_str!("../studies/programs.toml")),
    ("quic", include_str!("../studies/quic.toml")),
    ("wifi", include_str!("../studies/wifi.toml")),
    ("soorty2013linux", include_str!("../studies/soorty2013linux.toml")),
    ("sarkar2013winlin", include_str!("../studies/sarkar2013winlin.toml")),
    ("ogunleye2016", include_str!("../studies/ogunleye2016.toml")),
    ("kolahi2011wlan", include_str!("../studies/kolahi2011wlan.toml")),
    ("kolahi2009lan", include_str!("../studies/kolahi2009lan.toml")),
];
const QUICKSTART: &str = "quickstart";
const ENDING: &str = "stacklab";

/// A study's text with its name.
#[derive(Debug, Clone)]
pub struct StudySource {
    /// The file's name, as errors show it.
    pub name: String,
    /// The text.
    pub text: String,
}

impl StudySource {
    /// A campaign that begins now, with a new seed.
    pub fn campaign(self) -> Campaign {
        Campaign {
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_unix_ns: now_unix_ns(),
            study_name: self.name,
            study_text: self.text,
            scale: None,
            settings: Vec::new(),
            seed: new_seed(),
            testbed_description: String::new(),
            cpu_scope: CpuScope::Various,
            sample_period_ns: None,
        }
    }

    /// Reads the file, or takes the preset of that name; without a name, the quickstart.
    pub fn read(asked: Option<&Path>) -> Result<Self, CampaignError> {
        let path = asked.unwrap_or(Path::new(QUICKSTART));
        let preset = PRESETS.iter().find(|(name, _)| Path::new(name) == path);
        if let (Some((name, text)), false) = (preset, asked.is_some_and(Path::is_file)) {
            return Ok(StudySource { name: format!("{name}.toml"), text: (*text).to_owned() });
        }
        let text = read_text_file(path).map_err(|reason| {
            let advice = if reason.kind() == ErrorKind::NotFound { near(path) } else { String::new() };
            CampaignError::Usage(format!("could not read the study {}: {reason}{advice}", path.display()))
        })?;
        Ok(StudySource { name: path.display().to_string(), text })
    }

    /// Checks the study with a scale and settings.
    pub fn check(&self, scale: Option<&str>, settings: &[String]) -> Result<Study, CampaignError> {
        Ok(stacklab_study::parse(&Input { name: &self.name, text: &self.text, scale, settings })?)
    }
}

/// The names of the built-in studies.
pub fn preset_names() -> [&'static str; PRESETS.len()] {
    PRESETS.map(|(name, _)| name)
}

/// Presets with similar names, or all of them.
fn near(path: &Path) -> String {
    let written = path.file_stem().unwrap_or_default().to_string_lossy();
    let names = preset_names();
    match nearest(&written, names) {
        Some(name) => format!("; did you mean the built-in study `{name}`?"),
        None => format!("; the built-in studies are {}", names.join(", ")),
    }
}

/// A default seed: any number will do, since it is recorded. Short enough to be typed.
pub fn new_seed() -> u64 {
    now_unix_ns() / 1000 % 1_000_000
}

/// The name of a new record in this folder: study and time.
pub fn new_record(study: &str) -> PathBuf {
    // Milliseconds: two campaigns may start in one second.
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ");
    PathBuf::from(format!("{}-{time}.{ENDING}", stem(study)))
}

/// The newest record in this folder, of any study or of the named one.
pub fn newest_record(study: Option<&Path>) -> Result<PathBuf, CampaignError> {
    let files = std::fs::read_dir(".")
        .map_err(|error| refuse_to_resume(&format!("this folder cannot be read: {error}")))?;
    let prefix = study.map(|study| format!("{}-", stem(&study.display().to_string())));
    let records = files.flatten().map(|file| PathBuf::from(file.file_name())).filter(|path| {
        let name = path.display().to_string();
        path.extension().is_some_and(|ending| ending == ENDING)
            && prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix.as_str()))
    });
    records
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).unwrap_or(UNIX_EPOCH))
        .ok_or_else(|| refuse_to_resume(&format!("this folder holds no *.{ENDING} file of that study")))
}

fn refuse_to_resume(reason: &str) -> CampaignError {
    CampaignError::Usage(format!("there is nothing to resume: {reason}; name the record with --out"))
}

fn stem(study: &str) -> String {
    Path::new(study)
        .file_stem()
        .map_or_else(|| "study".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_file_is_a_preset_valid_at_every_scale() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<String> = files
            .map(|file| {
                assert!(file.extension().is_some_and(|ending| ending == "toml"), "{}", file.display());
                stem(&file.display().to_string())
            })
            .collect();
        let mut names = PRESETS.map(|(name, _)| name.to_owned()).to_vec();
        files.sort();
        names.sort();
        assert_eq!(names, files);
        for name in names {
            let source = StudySource::read(Some(Path::new(&name))).unwrap();
            assert_eq!(source.name, format!("{name}.toml"));
            assert_eq!(source.text, std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap());
            for scale in [None, Some("quick"), Some("standard"), Some("paper"), Some("tool")] {
                // Only studies whose publication names its program have this one.
                if scale == Some("tool") && !source.text.contains("[scale.tool]") {
                    continue;
                }
                source.check(scale, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }

    fn fail_to_read(name: &str) -> String {
        match StudySource::read(Some(Path::new(name))) {
            Err(failure) => failure.to_string(),
            Ok(source) => panic!("{}", source.name),
        }
    }

    #[test]
    fn unknown_study_name_is_answered_with_known_ones() {
        assert!(fail_to_read("mechanism").ends_with("; did you mean the built-in study `mechanisms`?"));
        assert!(fail_to_read("no-such.toml").contains("quickstart, stacks, mechanisms"));
    }
}
