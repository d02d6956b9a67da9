//! What a shell offers for the value of an option or an argument: names of closed sets. Each is tried with the parser
//! of its option, so that nothing is offered that the command line refuses.

use stacklab_campaign::sources::{StudySource, preset_names};
use stacklab_guests::image;
use stacklab_model::{Difference, Factor, Family, Io, Mechanism, Metric, SizeOf, Transport};
use stacklab_published::STUDIES;
use std::collections::BTreeSet;
use std::path::Path;

/// The value name of arguments that take a study: a name or a file.
const STUDY: &str = "STUDY";
/// That of options that take a kernel: a name, or a file or folder.
const KERNEL: &str = "KERNEL";
/// Commands whose studies are published ones only.
const OF_PUBLISHED: [&str; 2] = ["replicate", "reference"];
/// What `explain` takes beside studies.
const PROBES: [&str; 4] = ["udp", "tcp", "echo", "connect"];
/// Every format that any command writes or reads: each command has some of them.
const FORMATS: [&str; 14] = [
    "text", "markdown", "csv", "raw-csv", "json", "html", "latex", "svg", "pdf", "parquet", "ktap", "junit",
    "ntp", "ptp",
];
const SCALES: [&str; 3] = ["quick", "standard", "paper"];
const CLASSES: [&str; 3] = ["exclusive", "normal", "background"];

/// Names for the values of the arguments of a command. The built-in studies are read once.
pub(super) struct Offers {
    levels: Vec<String>,
}

impl Offers {
    pub(super) fn read() -> Self {
        Offers { levels: list_levels() }
    }

    /// What is offered for the value of an argument of a command, such as `stacklab image get`; nothing if it may be
    /// anything.
    pub(super) fn list(&self, command: &str, argument: &clap::Arg) -> Vec<String> {
        if !argument.get_possible_values().is_empty() {
            return Vec::new();
        }
        let Some(value) = argument.get_value_names().and_then(|names| names.first()) else {
            return Vec::new();
        };
        let mut names = self.find(command, value, argument.get_long());
        names.retain(|name| accepts(argument, name));
        names
    }

    fn find(&self, command: &str, value: &str, option: Option<&str>) -> Vec<String> {
        match (value, option) {
            (STUDY, _) => list_studies(command),
            (KERNEL | "SYSTEM" | "GUEST", _) => image::known().iter().map(ToString::to_string).collect(),
            ("LEVEL", _) => self.levels.clone(),
            ("NAME", Some("metric")) => own(Metric::NAMES),
            ("NAME", Some("mechanism")) => own(Mechanism::NAMES),
            ("NAME", Some("figure")) => own(&["list"]),
            ("PATH", Some("path")) => [own(&["loopback", "link"]), own(Mechanism::NAMES)].concat(),
            ("FACTOR", _) => own(Factor::NAMES),
            ("FAMILY", _) => own(Family::NAMES),
            ("TRANSPORT", _) => own(Transport::NAMES),
            ("MEANING", _) => own(SizeOf::NAMES),
            ("IO", _) => [own(&["auto"]), own(Io::NAMES)].concat(),
            ("FORMULA", _) => own(Difference::NAMES),
            ("FORMAT", _) => own(&FORMATS),
            ("SCALE", _) => own(&SCALES),
            ("CLASS", _) => own(&CLASSES),
            ("POINT", _) => list_code_points(),
            _ => Vec::new(),
        }
    }
}

/// Whether an argument takes files beside the names.
pub(super) fn takes_files(command: &str, argument: &clap::Arg) -> bool {
    let value = argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    value == Some(KERNEL) || value == Some(STUDY) && !takes_papers_only(command)
}

/// Whether a command takes published studies alone.
fn takes_papers_only(command: &str) -> bool {
    command.split(' ').any(|word| OF_PUBLISHED.contains(&word))
}

fn own(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(str::to_owned).collect()
}

/// Those with a name: expedited forwarding, class selectors, and the classes of assured forwarding (RFC 2597).
fn list_code_points() -> Vec<String> {
    let mut names = vec!["ef".to_owned()];
    names.extend((0..8).map(|class| format!("cs{class}")));
    for class in 1..=4 {
        names.extend((1..=3).map(|precedence| format!("af{class}{precedence}")));
    }
    names
}

fn list_studies(command: &str) -> Vec<String> {
    if takes_papers_only(command) {
        return STUDIES.iter().map(|study| study.name.to_owned()).collect();
    }
    if command.ends_with(" explain") {
        return [own(&PROBES), own(&preset_names())].concat();
    }
    own(&preset_names())
}

/// The levels of the built-in studies' factors, but for numbers and pairs of words.
fn list_levels() -> Vec<String> {
    let mut levels = BTreeSet::new();
    for name in preset_names() {
        let study = StudySource::read(Some(Path::new(name))).and_then(|source| source.check(None, &[]));
        let Ok(study) = study else { continue };
        for factor in Factor::ALL {
            let of_factor: BTreeSet<String> = study.cells.iter().map(|cell| cell.level(*factor)).collect();
            if of_factor.len() > 1 {
                levels.extend(of_factor);
            }
        }
    }
    levels.into_iter().filter(|level| is_word(level)).collect()
}

fn is_word(level: &str) -> bool {
    level.starts_with(|first: char| first.is_ascii_alphanumeric())
        && level.parse::<f64>().is_err()
        && level.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Whether the parser of an argument takes a value.
fn accepts(argument: &clap::Arg, value: &str) -> bool {
    let alone = clap::Arg::new("value").value_parser(argument.get_value_parser().clone());
    let line = clap::Command::new("stacklab").no_binary_name(true).arg(alone);
    line.try_get_matches_from([value]).is_ok()
}
