//! Which study is run or measured, where, and how much of it.

use crate::cli::quantities::{format, some_time};
use clap::Args;
use stacklab_campaign::CampaignError;
use stacklab_campaign::sources::StudySource;
use stacklab_guests::Placement;
use stacklab_report::OutputFormat;
use stacklab_study::Study;
use std::path::PathBuf;

/// Which study, and how it is changed.
#[derive(Debug, Args)]
pub(crate) struct StudyOptions {
    /// Study file, or built-in study: quickstart, systems, mechanisms, wifi, engines, or a published one
    /// (see: stacklab reference list); default: quickstart
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

    /// The study that they name, checked.
    pub(crate) fn check(&self) -> Result<(StudySource, Study), CampaignError> {
        let source = match &self.source {
            Some(source) => source.clone(),
            None => StudySource::read(self.study.as_deref())?,
        };
        let study = source.check(self.scale.as_deref(), &self.all_settings())?;
        Ok((source, study))
    }
}

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Which study.
    #[command(flatten)]
    pub study: StudyOptions,
    /// The record to write; default: a file in this folder named after study and time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Copy this program without asking to machines (over ssh) that lack this version
    #[arg(long)]
    pub copy_agent: bool,
    #[command(flatten)]
    pub placement: PlacementOptions,
    /// Resume the record named by --out, or the newest one in this folder, with its study, scale, settings
    /// and seed
    #[arg(long)]
    pub resume: bool,
    /// Then explain the differences in cost and rate by samples of the CPUs, for at most this time
    /// (60s); see `explain`
    #[arg(long, value_name = "TIME", value_parser = some_time, num_args = 0..=1, require_equals = true, default_missing_value = "60s")]
    pub explain: Option<u64>,
    /// Mean time between samples of a processor, nanoseconds, if something samples them meanwhile.
    #[arg(skip)]
    pub sample_period_ns: Option<u64>,
    /// Whether the record is there afterwards.
    #[arg(skip = true)]
    pub is_record_kept: bool,
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
