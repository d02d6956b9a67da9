//! `stacklab regress` and `stacklab bisect`: kernels compared by exact counts.

use crate::failure::{Failure, INTERRUPTED, TESTBED, interrupt_flag};
use crate::output::{print_text, width};
use clap::Args;
use stacklab_campaign::notice::note;
use stacklab_explain::{ExactRequest, check_emulator};
use stacklab_guests::emulator;
use stacklab_model::{ExactProbe, count, say};
use stacklab_regress::{
    Condition, CountedKernel, Counter, KernelComparison, RegressError, RegressFormat, Repository, Source,
    bisect as search, bisection, comparison,
};
use std::path::{Path, PathBuf};

/// Exit codes of `regress`, by which `git bisect run` decides; it has no others but that of an interruption.
const BAD: u8 = 1;
const SKIP: u8 = 125;
pub(crate) const STOP: u8 = 128;
/// Payload bytes of the UDP and TCP messages that are counted.
const SIZES: [u32; 2] = [128, 1408];

#[derive(Debug, Args)]
pub(crate) struct RegressOptions {
    /// The kernel to compare with: linux-SERIES, a bzImage, a folder with source, or a commit
    #[arg(long, value_name = "KERNEL", required_unless_present = "verify", conflicts_with = "verify")]
    pub baseline: Option<String>,
    /// The kernel to judge; may be repeated
    #[arg(long, value_name = "KERNEL", required_unless_present_any = ["verify", "repeat"], conflicts_with = "verify")]
    pub candidate: Vec<String>,
    /// The folder whose git repository has the commits; default: a candidate that is a folder, or this one
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// What makes a candidate bad: `[CELL] ipv4|ipv6|gap > NUMBER [%]`, in instructions per message; may be repeated;
    /// default: ipv4 > 8 and ipv6 > 8
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<Condition>,
    /// Check the ends of a bisect: GOOD repeats to the bit, and BAD is bad against it
    #[arg(long, num_args = 2, value_names = ["GOOD", "BAD"])]
    pub verify: Vec<String>,
    /// Boot the baseline N more times and compare each time with the first
    #[arg(long, value_name = "N", conflicts_with_all = ["candidate", "verify"])]
    pub repeat: Option<u32>,
    /// text, markdown, json, ktap or junit
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: RegressFormat,
}

#[derive(Debug, Args)]
pub(crate) struct BisectOptions {
    /// A commit before the change
    #[arg(value_name = "GOOD")]
    pub good: String,
    /// A later commit with the change
    #[arg(value_name = "BAD")]
    pub bad: String,
    /// The folder of the kernel's git repository, which is only read
    #[arg(value_name = "TREE", default_value = ".")]
    pub tree: PathBuf,
    /// What makes a commit bad, as of `regress`; default: half of the largest change between the ends
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<Condition>,
    /// text, markdown or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = document)]
    pub format: RegressFormat,
}

fn document(text: &str) -> Result<RegressFormat, String> {
    match text.parse()? {
        RegressFormat::Ktap | RegressFormat::Junit => {
            Err(format!("bisect has no {text}: use text, markdown or json"))
        }
        format => Ok(format),
    }
}

/// Compares kernels. The exit code is that of the worst: bad before skipped before good.
pub(crate) fn regress(options: &RegressOptions) -> Result<(), Failure> {
    judge(options).map_err(|failure| match failure.code {
        BAD | SKIP | INTERRUPTED => failure,
        _ => failure.with_code(STOP),
    })
}

fn judge(options: &RegressOptions) -> Result<(), Failure> {
    let conditions = match &options.conditions[..] {
        [] => Condition::usual(),
        given => given.to_vec(),
    };
    let kernels = Kernels::find(options)?;
    judge_kernels(&mut counter(&mut note)?, &kernels, &conditions, options)
}

fn judge_kernels(
    counter: &mut Counter<'_>,
    kernels: &Kernels<'_>,
    conditions: &[Condition],
    options: &RegressOptions,
) -> Result<(), Failure> {
    let before = check_baseline(counter, &kernels.baseline, options)?;
    let verifies = !options.verify.is_empty();
    let mut worst = None;
    for NamedKernel { name, source } in &kernels.candidates {
        match counter.count(name, source) {
            Ok(after) => {
                let found = KernelComparison::new(&before, &after, conditions);
                print_text(&comparison(&found, options.format, width()))?;
                if found.is_bad && !verifies {
                    worst = Some(Failure::new(BAD, format!("{name} is bad")));
                } else if !found.is_bad && verifies {
                    let baseline = kernels.baseline.name;
                    worst = Some(Failure::new(BAD, format!("{name} is not bad against {baseline}")));
                }
            }
            Err(error @ RegressError::Kernel(_)) if worst.is_none() => worst = Some(for_git(error)),
            Err(RegressError::Kernel(reason)) => note(&reason),
            Err(error) => return Err(for_git(error)),
        }
    }
    if let Some(failure) = worst {
        return Err(failure);
    }
    if verifies {
        let baseline = kernels.baseline.name;
        say!("verified: counts of {baseline} repeat to the bit, and the other end is bad");
    }
    Ok(())
}

/// A kernel as the command line names it.
struct NamedKernel<'a> {
    name: &'a str,
    source: Source,
}

impl<'a> NamedKernel<'a> {
    fn find(name: &'a str, tree: &Path) -> Result<Self, Failure> {
        Ok(NamedKernel { name, source: Source::find_by_name(name, tree).map_err(for_git)? })
    }
}

/// The kernels that are compared.
struct Kernels<'a> {
    baseline: NamedKernel<'a>,
    candidates: Vec<NamedKernel<'a>>,
}

impl<'a> Kernels<'a> {
    /// Finds the kernels that the command line names, and checks that each can be counted.
    fn find(options: &'a RegressOptions) -> Result<Self, Failure> {
        let RegressOptions { baseline, candidate, verify, format, .. } = options;
        let folder = candidate.iter().map(Path::new).find(|path| path.is_dir());
        let tree = options.tree.as_deref().or(folder).unwrap_or(Path::new("."));
        let (baseline, candidates) = match (&verify[..], baseline) {
            ([good, bad], _) => (good, std::slice::from_ref(bad)),
            (_, Some(baseline)) => (baseline, &candidate[..]),
            _ => return Err(Failure::usage("name a kernel: --baseline KERNEL")),
        };
        if candidates.len() > 1
            && matches!(format, RegressFormat::Json | RegressFormat::Ktap | RegressFormat::Junit)
        {
            return Err(Failure::usage(format!("--format {format} has room for one --candidate")));
        }
        let mut kernels = Kernels { baseline: NamedKernel::find(baseline, tree)?, candidates: Vec::new() };
        for name in candidates {
            kernels.candidates.push(NamedKernel::find(name, tree)?);
        }
        for kernel in kernels.candidates.iter().chain([&kernels.baseline]) {
            kernel.source.check().map_err(for_git)?;
        }
        Ok(kernels)
    }
}

/// Counts the baseline, and again as often as the user asks: its counts have to repeat. A baseline that cannot be
/// counted is not the candidate's fault: git has to stop.
fn check_baseline(
    counter: &mut Counter<'_>,
    baseline: &NamedKernel<'_>,
    options: &RegressOptions,
) -> Result<CountedKernel, Failure> {
    let NamedKernel { name, source } = baseline;
    let before = counter.count(name, source).map_err(stop_git)?;
    let again = options.repeat.unwrap_or(u32::from(!options.verify.is_empty()));
    let mut largest = 0.0_f64;
    for (number, counted) in counter.repeat(name, source, again).map_err(stop_git)?.into_iter().enumerate() {
        let change = KernelComparison::new(&before, &counted, &[]).largest_change();
        largest = largest.max(change);
        let boot = number + 1;
        note(&format!("{name}: boot {boot} of {again} differs by {change} instructions per message"));
    }
    if options.repeat.is_some() {
        print_text(&format!(
            "{name}: {}, largest difference {largest} instructions per message\n",
            count(again, "more boot")
        ))?;
    }
    if largest > 0.0 {
        let reason = format!("counts of {name} do not repeat: they differ by {largest}");
        return Err(Failure::new(STOP, reason));
    }
    Ok(before)
}

fn stop_git(error: RegressError) -> Failure {
    Failure::new(STOP.max(for_git_code(&error)), error)
}

pub(crate) fn bisect(options: &BisectOptions) -> Result<(), Failure> {
    let repository = Repository::of(&options.tree).map_err(fail_bisect)?;
    let ends = [options.good.as_str(), &options.bad];
    let found = search(&mut counter(&mut note)?, &repository, ends, &options.conditions);
    print_text(&bisection(&found.map_err(fail_bisect)?, options.format, width()))
}

fn fail_bisect(error: RegressError) -> Failure {
    match error {
        RegressError::Usage(_) => Failure::usage(error),
        RegressError::Interrupted => Failure::new(INTERRUPTED, error),
        _ => Failure::new(TESTBED, error),
    }
}

fn counter<'a>(step: &'a mut dyn FnMut(&str)) -> Result<Counter<'a>, Failure> {
    let probes = vec![ExactProbe::Udp, ExactProbe::Tcp, ExactProbe::Connect];
    let request = ExactRequest { probes, sizes: SIZES.into(), ..ExactRequest::default() };
    let plan = request.plan().map_err(Failure::usage)?;
    let program = std::env::current_exe().map_err(Failure::step("find this program"))?;
    let qemu = check_emulator(&emulator()?).map_err(|reason| Failure::new(TESTBED, reason))?;
    Ok(Counter::new(plan, program, qemu, interrupt_flag()?, step))
}

fn for_git(error: RegressError) -> Failure {
    Failure::new(for_git_code(&error), error)
}

fn for_git_code(error: &RegressError) -> u8 {
    match error {
        RegressError::Kernel(_) => SKIP,
        RegressError::Interrupted => INTERRUPTED,
        RegressError::Usage(_) | RegressError::Machine(_) => STOP,
    }
}
