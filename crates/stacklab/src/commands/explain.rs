//! `stacklab explain`: where in the network stack two arms differ, in nanoseconds a message.
//!
//! A campaign is run while the processors are sampled. Samples and slices have one clock, so the samples of each arm
//! are those of the times of its slices. Runs that were sampled give no verdicts: sampling costs time.

use crate::cli::explain::ExplainOptions;
use crate::cli::run::{PlacementOptions, RunOptions, StudyOptions};
use crate::commands::output::{print_text, width};
use crate::commands::run::campaign;
use crate::failure::Failure;
use stacklab_campaign::sources::{StudySource, new_seed};
use stacklab_explain::{ARM_NS, ARMS, SLICE_NS, Sampler, Timing, WARMUP_NS, check_study, explanations};
use stacklab_guests::Placement;
use stacklab_model::{Cell, ComparisonSpec, Factor, Family, Io, Mechanism};
use stacklab_report::page::html;
use stacklab_report::{OutputFormat, stage_costs};
use stacklab_serve::page::{ROOM, document};
use stacklab_study::Study;
use stacklab_traffic::protocol::AgentError;
use std::path::Path;

/// The probes that can be named in place of a study.
const PROBES: [&str; 3] = ["udp", "tcp", "echo"];
/// Trials that a study of our own has at least, and the shortest time of an arm in one: a few slices.
const LEAST_TRIALS: u64 = 8;
const LEAST_ARM_NS: u64 = 5 * SLICE_NS;

/// Runs the study while the processors are sampled, keeps the costs by stage in the record, and prints them.
pub(crate) fn explain(options: &ExplainOptions) -> Result<(), Failure> {
    let folder = tempfile::tempdir()
        .map_err(|reason| Failure::Output { what: "a folder for the record".to_owned(), reason })?;
    let own = PROBES.iter().any(|probe| Path::new(probe) == options.study) && !options.study.is_file();
    let source = match own {
        true => Some(StudySource { name: options.study.display().to_string(), text: study_text(options)? }),
        false => None,
    };
    let seed = options.seed.unwrap_or_else(new_seed);
    let asked = StudyOptions {
        study: Some(options.study.clone()),
        scale: None,
        seed: Some(seed),
        settings: options.settings.clone(),
        without: Vec::new(),
        source,
    };
    let (source, study) = asked.check()?;
    check_study(&study, &source.name, &Placement::WhereNeeded)?;
    let (factor, pairs) = pairs(&study, if own { None } else { options.factor })?;
    let out = options.out.clone().unwrap_or_else(|| folder.path().join("explain.stacklab"));
    let timing = Timing { period_ns: options.period, is_fixed: options.fixed_period, seed };
    let sampler = Sampler::start(timing)?;
    let ran = campaign(&RunOptions {
        study: asked,
        out: Some(out),
        copy_agent: false,
        placement: PlacementOptions { in_vm: Placement::WhereNeeded },
        resume: false,
        explain: None,
        sample_period_ns: Some(options.period),
        is_record_kept: options.out.is_some(),
    });
    let profile = sampler.finish()?;
    let (mut record, measured) = ran?;
    // A sampled campaign cannot be resumed.
    measured.map_err(|failure| match failure {
        failure if failure.is_interruption() => AgentError::Interrupted.into(),
        Failure::Resumable { error, .. } => error.into(),
        failure => failure,
    })?;
    let found = explanations(&record, &profile, factor, &pairs)?;
    record.put_explanations(&found)?;
    print_text(&match options.format {
        OutputFormat::Html => html(&document(&record, ROOM)?)?,
        format => stage_costs(&found, format, options.functions, width()),
    })?;
    if found.iter().all(|explanation| explanation.costs().is_none()) {
        return Err(Failure::NothingValid);
    }
    Ok(())
}

/// A study of two levels of a factor, for one probe.
fn study_text(options: &ExplainOptions) -> Result<String, Failure> {
    let (probe, transport) = match options.study.to_str() {
        Some("echo") => ("echo", "udp"),
        Some(transport) => ("stream", transport),
        None => ("stream", "udp"),
    };
    let factor = options.factor.unwrap_or(Factor::Family);
    let levels = match (&options.levels[..], factor) {
        ([baseline, candidate], _) => [baseline.clone(), candidate.clone()],
        ([], Factor::Family) => [Family::Ipv4.to_string(), Family::Ipv6.to_string()],
        ([], Factor::Io) => [Io::Send.to_string(), Io::Sendmmsg.to_string()],
        ([], Factor::Mechanism) => [Mechanism::Native.to_string(), Mechanism::Nat64.to_string()],
        _ => {
            return Err(Failure::Usage(format!(
                "--factor {factor} needs two levels: --levels A,B; or name a study that compares them instead of {}",
                options.study.display()
            )));
        }
    };
    // Figures and switches have no quotes.
    let [baseline, candidate] =
        levels.map(|level| match level.parse::<u32>().is_ok() || level.parse::<bool>().is_ok() {
            true => level,
            false => format!("{level:?}"),
        });
    let metrics = if probe == "echo" { "rtt" } else { "throughput" };
    let trials = options.seconds.div_ceil(ARMS * ARM_NS).max(LEAST_TRIALS);
    // A translator carries one family.
    let family = if factor.is_of_testbeds() { Family::Ipv6 } else { Family::Ipv4 };
    let others = [
        (Factor::Family, format!("\"{family}\"")),
        (Factor::Transport, format!("\"{transport}\"")),
        (Factor::Framing, "\"segment\"".to_owned()),
        (Factor::Size, options.size.to_string()),
    ];
    let others: String = others
        .into_iter()
        .filter(|(other, _)| *other != factor)
        .map(|(other, level)| format!("{other} = [{level}]\n"))
        .collect();
    let is_routed = [Factor::Mechanism, Factor::Routers, Factor::Translator].contains(&factor);
    let topology = if is_routed { "topology = \"routed\"\n" } else { "" };
    Ok(format!(
        "title = \"CPU time of {}\"\n[testbed]\n{topology}offloads = false\n\
         [factors]\n{factor} = [{baseline}, {candidate}]\n{others}\
         [probe.{probe}]\nmetrics = [\"{metrics}\"]\nlength = {{ time = \"{}us\" }}\nwarmup = \"{}us\"\n\
         [blocks]\nmin = {trials}\nmax = {trials}\nschedule = \"interleaved\"\nslice = \"{}us\"\n\
         [[comparison]]\nfactor = \"{factor}\"\nbaseline = {baseline}\ncandidate = {candidate}\n",
        options.study.display(),
        options.seconds.div_ceil(ARMS * trials).max(LEAST_ARM_NS) / 1000,
        WARMUP_NS / 1000,
        SLICE_NS / 1000,
    ))
}

/// The factor to explain, and the cells that are compared by it.
fn pairs(study: &Study, asked: Option<Factor>) -> Result<(Factor, Vec<[Cell; 2]>), Failure> {
    let compared =
        study.comparisons.iter().find(|comparison| asked.is_none_or(|factor| comparison.factor == factor));
    let Some(ComparisonSpec { factor, baseline, candidate, .. }) = compared else {
        let what = asked.map_or_else(String::new, |factor| format!(" of {factor}"));
        return Err(Failure::Usage(format!(
            "the study has no [[comparison]]{what}: add one, with baseline and candidate"
        )));
    };
    let has = |cell: &&Cell, level: &str| cell.level(*factor) == *level;
    let pairs = study.cells.iter().filter(|cell| has(cell, baseline)).filter_map(|cell| {
        let other = study
            .cells
            .iter()
            .filter(|other| has(other, candidate))
            .find(|other| other.same_but(cell, *factor))?;
        Some([cell.clone(), other.clone()])
    });
    Ok((*factor, pairs.collect()))
}
