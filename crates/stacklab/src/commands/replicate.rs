//! `stacklab replicate`.

use crate::commands::run::RunOptions;
use crate::commands::run::campaign;
use crate::commands::study::{PlacementOptions, StudyOptions};
use crate::failure::Failure;
use crate::output::{print_text, width};
use crate::quantities::format;
use clap::Args;
use stacklab_published::replication::{replicate as judged, text};
use stacklab_published::{Reference, study as published};
use stacklab_report::OutputFormat;
use stacklab_store::Record;
use std::path::PathBuf;

/// Options of `replicate`.
#[derive(Debug, Args)]
pub(crate) struct ReplicateOptions {
    /// The study; see: stacklab reference list
    #[arg(value_name = "STUDY")]
    pub study: String,
    /// Effort: quick (minutes), standard (until intervals meet the target), paper (the study's runs and packets)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    pub scale: String,
    /// Seed of the plan's random order; default: a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the preset, for example blocks.min=20; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The record to write; default: a file in this folder named after study and time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub placement: PlacementOptions,
    /// Test the findings on this record, without measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "settings", "seed", "scale"])]
    pub from: Option<PathBuf>,
    /// text or json
    #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "json"]), default_value = "text")]
    pub format: OutputFormat,
}

/// Runs a published study's preset, or reads a record of one, and tests the study's findings on it.
pub(crate) fn replicate(options: ReplicateOptions) -> Result<(), Failure> {
    let study = published(&options.study).map_err(Failure::usage)?;
    let all = Reference::built_in()?;
    let ended = match &options.from {
        Some(path) => (Record::read(path)?, Ok(())),
        None => {
            eprint!("{}", text::limits(&all.of(study.name).limits, width()));
            campaign(&RunOptions {
                study: StudyOptions {
                    study: Some(study.name.into()),
                    scale: Some(options.scale),
                    seed: options.seed,
                    settings: options.settings,
                    ..StudyOptions::default()
                },
                out: options.out,
                placement: options.placement.clone(),
                is_record_kept: true,
                ..RunOptions::default()
            })?
        }
    };
    let (record, measured) = ended;
    let replication = judged(study, &all, &record)?;
    print_text(&match options.format {
        OutputFormat::Json => replication.json(),
        _ => text::render(&replication, width()),
    })?;
    eprintln!("The record: {} (stacklab report prints its comparisons)", record.path().display());
    measured.map_err(|error| Failure::resumable(error, record.path()))?;
    if replication.runs == 0 { Err(Failure::nothing_valid()) } else { Ok(()) }
}
