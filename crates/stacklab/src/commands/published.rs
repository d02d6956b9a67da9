//! `stacklab reference` and `stacklab replicate`: published studies.

use crate::commands::run::{RunOptions, campaign, write_resume_command};
use crate::commands::study::{PlacementOptions, StudyOptions};
use crate::failure::Failure;
use crate::output::{print_text, width};
use crate::quantities::format;
use clap::{Args, Subcommand};
use stacklab_campaign::notice::note;
use stacklab_model::say_part;
use stacklab_model::wifi::{Band, Guard, RadioSettings, Width};
use stacklab_published::replication::{limits, render, replicate as judged};
use stacklab_published::{Reference, airtime, audit_blocks, audit_json, list, show, study};
use stacklab_report::{OutputFormat, text};
use stacklab_store::Record;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ReferenceCommand {
    /// List the studies with the number of figures, stated differences and findings
    List,
    /// Print a study's tables, stated differences and findings
    Show {
        /// The study; see: stacklab reference list
        #[arg(value_name = "STUDY")]
        study: String,
    },
    /// Recompute every stated difference by each formula, and print which formula reproduces it
    Audit {
        /// text, or json: an object for each stated difference
        #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "json"]), default_value = "text")]
        format: OutputFormat,
    },
    /// Print the capacity of a Wi-Fi channel by the airtime model (802.11n), for each family, size and security
    Airtime(AirtimeOptions),
}

/// The default is the channel of the study kolahi2011wlan.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AirtimeOptions {
    /// Frequency band, GHz: 2.4 or 5
    #[arg(long, value_name = "BAND", default_value = "2.4")]
    pub band: Band,
    /// Channel width, MHz: 20 or 40
    #[arg(long, value_name = "WIDTH", default_value = "40")]
    pub width: Width,
    /// Guard interval: long or short
    #[arg(long, value_name = "GUARD", default_value = "short")]
    pub guard: Guard,
    /// Modulation and coding scheme, 0 to 15
    #[arg(long, value_name = "INDEX", default_value_t = 15)]
    pub mcs: u8,
}

pub(crate) fn reference(command: &ReferenceCommand) -> Result<(), Failure> {
    let all = Reference::built_in()?;
    print_text(&match command {
        ReferenceCommand::List => text(&list(&all), width()),
        ReferenceCommand::Show { study: name } => {
            text(&show(study(name).map_err(Failure::usage)?, &all), width())
        }
        ReferenceCommand::Audit { format: OutputFormat::Json } => audit_json(&all),
        ReferenceCommand::Audit { .. } => text(&audit_blocks(&all), width()),
        ReferenceCommand::Airtime(options) => {
            let AirtimeOptions { band, width: channel, guard, mcs } = *options;
            let settings = RadioSettings { band, width: channel, guard, mcs, ..RadioSettings::default() };
            text(&airtime(&settings).map_err(Failure::usage)?, width())
        }
    })
}

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

pub(crate) fn replicate(options: ReplicateOptions) -> Result<(), Failure> {
    let study = study(&options.study).map_err(Failure::usage)?;
    let all = Reference::built_in()?;
    let ended = match &options.from {
        Some(path) => (Record::read(path)?, Ok(())),
        None => {
            say_part!("{}", limits(&all.of(study.name), width()));
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
        _ => render(&replication, width()),
    })?;
    note(&format!("The record: {} (stacklab report prints its comparisons)", record.path().display()));
    let resume = write_resume_command(&StudyOptions::default(), &record);
    measured.map_err(|error| Failure::resumable(error, &resume))?;
    if replication.runs == 0 { Err(Failure::nothing_valid()) } else { Ok(()) }
}
