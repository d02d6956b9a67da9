//! Which study is run or measured, where, and how much of it.

use crate::cli::quantities::some_time;
use crate::cli::reference::TextOrJson;
use clap::Args;
use stacklab_testbed::Placement;
use std::path::PathBuf;

/// Which study, and how it is changed.
#[derive(Debug, Args)]
pub(crate) struct StudyOptions {
    /// Study file, or the name of a built-in study: quickstart, systems, mechanisms, wifi, engines, or a published one
    /// (see: stacklab reference list); without one, the quickstart
    #[arg(value_name = "STUDY")]
    pub study: Option<PathBuf>,
    /// How much effort: the study's table of that name is merged over it (quick, standard, paper)
    #[arg(long, value_name = "SCALE")]
    pub scale: Option<String>,
    /// Seed of the plan's random order; without one, a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the study, for example blocks.min=20; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Leave this level out of its factor, with the comparisons that need it, such as linux-6.12; may be given again
    #[arg(long, value_name = "LEVEL")]
    pub without: Vec<String>,
}

impl StudyOptions {
    /// The settings, with the one that leaves levels out.
    pub(crate) fn all_settings(&self) -> Vec<String> {
        let without = (!self.without.is_empty()).then(|| format!("without={:?}", self.without));
        self.settings.iter().cloned().chain(without).collect()
    }
}

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Which study.
    #[command(flatten)]
    pub study: StudyOptions,
    /// The record to write; without it, one in this folder named after the study and the time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Put this program on machines that ssh reaches and that have none of this version, without asking
    #[arg(long)]
    pub copy_agent: bool,
    #[command(flatten)]
    pub placement: PlacementOptions,
    /// Go on with the record named by --out, or with the newest one in this folder; study, scale, settings and seed
    /// are those it was begun with
    #[arg(long)]
    pub resume: bool,
    /// Afterwards find why arms are better in cost or rate, by samples of the processors, for at most this time
    /// (60s); needs what `explain` needs
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
    /// Build the whole testbed of a study with routers inside a guest whatever this kernel can do: inside the fastest
    /// that is here, or inside the one named (uml, uml-NAME, linux-6.1 ..); without it, only where this kernel lacks
    /// what a mechanism needs
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
    /// How much effort: quick (minutes), standard (until intervals meet the target), paper (as many runs and packets)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    pub scale: String,
    /// Seed of the plan's random order; without one, a new one, which is recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the preset, for example blocks.min=20; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The record to write; without it, one in this folder named after the study and the time
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub placement: PlacementOptions,
    /// Measure nothing: test the findings on this record
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "settings", "seed", "scale"])]
    pub from: Option<PathBuf>,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextOrJson,
}
