//! The options of `stacklab explain`.

use crate::cli::quantities::{DOCUMENT_OR_HTML, format, some_time};
use clap::Args;
use stacklab_model::Factor;
use stacklab_report::OutputFormat;
use std::path::PathBuf;

/// Options of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// udp, tcp or echo; or a study with interleaved arms whose hosts share this kernel
    #[arg(value_name = "STUDY", default_value = "udp")]
    pub study: PathBuf,
    /// Bytes per message (without a study)
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    pub size: u32,
    /// Sampling time, with warm-up and idle slices (without a study)
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "24s")]
    pub seconds: u64,
    /// The factor to explain: one of the study's comparisons; without a study, any that can be interleaved
    #[arg(long, value_name = "FACTOR")]
    pub factor: Option<Factor>,
    /// The factor's two levels, baseline and candidate (without a study); family, io and mechanism have defaults
    #[arg(long, value_name = "A,B", requires = "factor", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// Mean time between samples of a CPU; shorter times find differences sooner and cost more
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "200us")]
    pub period: u64,
    /// Equal periods between samples; the lock ratio shows aliasing (docs/explain.md)
    #[arg(long, hide = true)]
    pub fixed_period: bool,
    /// Also the functions that differ most
    #[arg(long)]
    pub functions: bool,
    /// text, markdown, csv, raw-csv or json; html (one self-contained page)
    #[arg(long, value_name = "FORMAT", value_parser = format(DOCUMENT_OR_HTML), default_value = "text")]
    pub format: OutputFormat,
    /// Seed of the plan's order and of the samples' times; without one, a new one
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change one key of the study; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Keep the record in this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
