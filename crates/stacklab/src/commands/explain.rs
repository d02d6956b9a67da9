//! `stacklab explain`: where in the network stack two arms differ, in nanoseconds a message.
//!
//! A campaign is run while the processors are sampled. Samples and slices have one clock, so the samples of each arm
//! are those of the times of its slices. Runs that were sampled give no verdicts: sampling costs time. With `--exact`,
//! instructions are counted in an emulated machine instead.

use crate::commands::run::RunOptions;
use crate::commands::run::campaign;
use crate::commands::study::StudyOptions;
use crate::failure::{Failure, interrupt_flag};
use crate::output::{print_text, width};
use crate::quantities::{DOCUMENT_OR_HTML, format, some_time};
use clap::Args;
use programs::explain_programs;
use stacklab_campaign::CampaignError;
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::{StudySource, new_seed, preset_names};
use stacklab_explain::{
    ExactRequest, ExplainError, KERNEL, KernelSource, PROBES, Sampler, Timing, check_countable, check_study,
    compared_cells, count_beside, count_instructions, explanations, sampled_study,
};
use stacklab_guests::Placement;
use stacklab_guests::kernel::Kernel;
use stacklab_model::{ExactPath, ExactProbe, Factor, Family};
use stacklab_report::page::{exact_page, html};
use stacklab_report::{OutputFormat, exact_counts, stage_costs};
use stacklab_serve::page::{ROOM, document};
use stacklab_traffic::protocol::AgentError;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

mod programs;

/// Bytes per message.
const DEFAULT_SIZE: u32 = 128;

/// Options of sampling, which an exact count does not have.
const SAMPLING: [&str; 5] = ["seconds", "period", "fixed_period", "seed", "out"];

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// udp, tcp or echo; or a study with interleaved arms whose hosts share this kernel; with --exact also connect, or
    /// a study of programs
    #[arg(value_name = "STUDY", default_value = "udp", default_value_if("exact", "true", None))]
    pub study: Option<PathBuf>,
    /// Count the instructions of messages (default: udp and tcp) in an emulated machine, without root; or those of
    /// requests in a study's programs, in user space
    #[arg(long, conflicts_with_all = SAMPLING, group = "counts")]
    pub exact: bool,
    /// Also count the instructions of the sampled arms, for the record and beside the nanoseconds
    #[arg(long, group = "counts", conflicts_with = "exact")]
    pub instructions: bool,
    /// The kernel whose instructions are counted: linux-SERIES, a bzImage, or a folder with its source, which is built
    /// [default: linux-6.1]
    #[arg(long, value_name = "KERNEL", requires = "counts")]
    pub kernel: Option<KernelSource>,
    /// The network of both arms: loopback, link (two hosts and a veth pair) or a mechanism between routers
    /// [default: loopback]
    #[arg(long, value_name = "PATH", requires = "exact")]
    pub path: Option<ExactPath>,
    /// The family of both arms, if they differ in another factor [default: ipv6 where both arms carry it; ipv4 for
    /// sockets]; of programs, the only one that is counted
    #[arg(long, value_name = "FAMILY", requires = "exact")]
    pub family: Option<Family>,
    /// nftables rules that match nothing at the receiver: as many in both arms, or two numbers to compare
    #[arg(long, value_name = "N[,N]", requires = "exact", value_delimiter = ',')]
    pub rules: Vec<u32>,
    /// Requests of the shorter runs of programs; the longer ones make twice as many [default: 100]
    #[arg(long, value_name = "N", requires = "exact", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests: Option<u32>,
    /// Bytes per message (without a study); with --exact, one or more sizes [default: 128]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub size: Vec<u32>,
    /// Sampling time, with warm-up and idle slices (without a study)
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "24s")]
    pub seconds: u64,
    /// The factor to explain: one of the study's comparisons; without a study, any that can be interleaved; with
    /// --exact: family, mechanism, size, socket, routes, conntrack or rules
    #[arg(long, value_name = "FACTOR")]
    pub factor: Option<Factor>,
    /// The factor's two levels, baseline and candidate (without a study); family, io and mechanism have
    /// defaults, and with --exact size, socket, routes, conntrack and rules
    #[arg(long, value_name = "A,B", requires = "factor", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// Mean time between samples of a CPU; shorter times find differences sooner and cost more
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "200us")]
    pub period: u64,
    /// Equal periods between samples; the lock ratio shows aliasing (docs/explain.md)
    #[arg(long, hide = true)]
    pub fixed_period: bool,
    /// Also the functions that differ most; with --exact, those that differ (as CSV and JSON, all)
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

impl ExplainOptions {
    fn sizes(&self) -> Vec<u32> {
        if self.size.is_empty() { vec![DEFAULT_SIZE] } else { self.size.clone() }
    }

    fn kernel(&self) -> Result<KernelSource, Failure> {
        self.kernel.clone().map_or_else(|| KERNEL.parse().map_err(Failure::usage), Ok)
    }
}

/// Runs the study while the processors are sampled, keeps the costs by stage in the record, and prints them.
pub(crate) fn explain(options: &ExplainOptions) -> Result<(), Failure> {
    if options.exact {
        return exact(options);
    }
    let folder = tempfile::tempdir().map_err(Failure::step("create a folder for the record"))?;
    let ExplainOptions { factor, levels, seconds, .. } = options;
    let study = &options.study.clone().unwrap_or_default();
    let [size] = options.sizes()[..] else {
        return Err(Failure::usage("--size takes one size; to count several, add --exact"));
    };
    let own = PROBES.into_iter().find(|probe| Path::new(probe) == study && !study.is_file());
    let text = own.map(|name| sampled_study(name, *factor, levels, size, *seconds)).transpose()?;
    let source = own.zip(text).map(|(name, text)| StudySource { name: name.to_owned(), text });
    let seed = options.seed.unwrap_or_else(new_seed);
    let asked = StudyOptions {
        study: Some(study.clone()),
        seed: Some(seed),
        settings: options.settings.clone(),
        source,
        ..StudyOptions::default()
    };
    let (source, study) = asked.check()?;
    check_study(&study, &source.name, &Placement::WhereNeeded)?;
    let (factor, pairs) = compared_cells(&study, if own.is_some() { None } else { *factor })?;
    if options.instructions {
        check_countable(&study, &pairs)?;
    }
    let out = options.out.clone().unwrap_or_else(|| folder.path().join("explain.stacklab"));
    let timing = Timing { period_ns: options.period, is_fixed: options.fixed_period, seed };
    let sampler = Sampler::start(timing)?;
    let ran = campaign(&RunOptions {
        study: asked,
        out: Some(out),
        sample_period_ns: Some(options.period),
        is_record_kept: options.out.is_some(),
        ..RunOptions::default()
    });
    let profile = sampler.finish()?;
    let (mut record, measured) = ran?;
    // A sampled campaign cannot be resumed.
    measured.map_err(|error| match error {
        CampaignError::Interrupted(_) => AgentError::Interrupted.into(),
        error => error,
    })?;
    let mut found = explanations(&record, &profile, factor, &pairs)?;
    if options.instructions {
        with_kernel(&options.kernel()?, |kernel, program, step, interrupted| {
            count_beside(&mut found, &study, kernel, program, step, interrupted)
        })?;
    }
    record.put_explanations(&found)?;
    print_text(&match options.format {
        OutputFormat::Html => html(&document(&record, ROOM)?)?,
        format => stage_costs(&found, format, options.functions, width()),
    })?;
    if found.iter().all(|explanation| explanation.costs().is_none()) {
        return Err(Failure::nothing_valid());
    }
    Ok(())
}

fn exact(options: &ExplainOptions) -> Result<(), Failure> {
    let probes = match options.study.as_deref() {
        None => vec![ExactProbe::Udp, ExactProbe::Tcp],
        Some(named) => match named.to_str().and_then(|text| text.parse().ok()) {
            Some(probe) => vec![probe],
            None => {
                check_name(named)?;
                return explain_programs(options, named);
            }
        },
    };
    if options.requests.is_some() {
        let text = "--requests is for the programs of a study: messages are counted one by one";
        return Err(Failure::usage(text));
    }
    if !options.settings.is_empty() {
        return Err(Failure::usage("--set changes a study, and --exact counts messages without one"));
    }
    let request = ExactRequest {
        probes,
        sizes: options.sizes(),
        path: options.path,
        factor: options.factor,
        levels: options.levels.clone(),
        rules: options.rules.clone(),
        family: options.family,
    };
    let plan = request.plan().map_err(Failure::usage)?;
    let counts = with_kernel(&options.kernel()?, |kernel, program, step, interrupted| {
        count_instructions(&plan, kernel, program, step, interrupted)
    })?;
    print_text(&match options.format {
        OutputFormat::Html => html(&exact_page(&counts))?,
        format => exact_counts(&counts, format, options.functions, width()),
    })
}

/// Refuses a name that is neither a study nor a probe.
fn check_name(named: &Path) -> Result<(), Failure> {
    let is_name = named.extension().is_none() && named.components().count() == 1;
    if !is_name || named.exists() || preset_names().into_iter().any(|preset| Path::new(preset) == named) {
        return Ok(());
    }
    let probes: Vec<&str> = ExactProbe::ALL.iter().map(|probe| probe.name()).collect();
    Err(Failure::usage(format!(
        "there is no study `{}`: --exact counts {}, or the programs of a study",
        named.display(),
        probes.join(", ")
    )))
}

/// Counts with a kernel, which may be built first, and this program.
fn with_kernel<T>(
    source: &KernelSource,
    count: impl FnOnce(&Kernel, &Path, &mut dyn FnMut(&str), &AtomicBool) -> Result<T, ExplainError>,
) -> Result<T, Failure> {
    let program = std::env::current_exe().map_err(Failure::step("find this program"))?;
    let folder = tempfile::tempdir().map_err(Failure::step("create a folder for the kernel"))?;
    let interrupted = interrupt_flag()?;
    let mut step = |what: &str| note(&format!("{source}: {what}"));
    let kernel = source.kernel(folder.path(), &mut step, interrupted)?;
    Ok(count(&kernel, &program, &mut step, interrupted)?)
}
