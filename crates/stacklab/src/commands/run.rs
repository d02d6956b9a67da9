//! `stacklab run`.

mod instructions;
mod request;

use crate::commands::report::{self, FailOn};
use crate::commands::run::instructions::count_instructions;
use crate::commands::run::request::{CampaignRequest, open_record};
use crate::commands::study::{PlacementOptions, StudyOptions};
use crate::failure::{Failure, RECORD, WORSE, interrupt_flag};
use crate::images::{guests, images_are_here};
use crate::missing_programs::report_left_out;
use crate::output::show_seconds;
use crate::quantities::some_time;
use clap::Args;
use stacklab_campaign::generator::Programs;
use stacklab_campaign::notice::note;
use stacklab_campaign::progress::Progress;
use stacklab_campaign::record::{conclude, has_a_block, study_of};
use stacklab_campaign::resumed::describe_moves;
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_campaign::rig::reach;
use stacklab_campaign::rig::{Rigs, TrialHosts};
use stacklab_campaign::trial::other_load::LoadSample;
use stacklab_campaign::{CampaignError, measure};
use stacklab_explain::{ExplainError, explain_verdicts};
use stacklab_model::{Findings, RunRecord, System, Systems, Trial, count, quote_file};
use stacklab_store::{Record, StoreError};
use stacklab_study::{Plan, Study};
use stacklab_testbed::{Privilege, enter, services};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[derive(Debug, Default, Args)]
pub(crate) struct RunOptions {
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
    /// Exit with code 8 if a candidate is worse than its baseline by more than this: worse=5%
    #[arg(long, value_name = "worse=PERCENT")]
    pub fail_on: Option<FailOn>,
    /// Mean time between samples of a processor, nanoseconds, if something samples them meanwhile.
    #[arg(skip)]
    pub sample_period_ns: Option<u64>,
    /// Whether the record is there afterwards.
    #[arg(skip = true)]
    pub is_record_kept: bool,
}

pub(crate) fn run(options: RunOptions) -> Result<(), Failure> {
    refuse_existing(&options)?;
    let (mut record, measured) = campaign(&options)?;
    let path = record.path().to_owned();
    let resume = write_resume_command(&options.study, &record);
    let mut measured = measured.map_err(|error| Failure::resumable(error, &resume));
    if measured.is_ok() {
        measured = count_instructions(&mut record, &options.placement, &resume);
    }
    if let (Ok(()), Some(ns)) = (&measured, options.explain) {
        let place = &options.placement.in_vm;
        let time = Duration::from_nanos(ns);
        let explained = explain_verdicts(&mut record, place, time, interrupt_flag()?);
        measured = explained.map_err(|error| match error {
            ExplainError::Campaign(error) if error.is_interruption() => Failure::resumable(error, &resume),
            error => error.into(),
        });
    }
    let findings = Findings { record_name: Some(path.display().to_string()), ..conclude(&record)? };
    if measured.is_ok() || has_a_block(&record)? {
        report::print(&findings, &path)?;
    } else {
        note("stacklab: no block is complete: there is nothing to compare yet");
    }
    // The reason of an early end names it.
    if !measured.as_ref().is_err_and(|failure| failure.names(&path)) {
        note(&format!("The record: {} (other formats: stacklab report --help)", path.display()));
    }
    measured?;
    match options.fail_on {
        _ if findings.valid_runs == 0 => Err(Failure::nothing_valid()),
        Some(FailOn { worse }) => refuse_worse(&findings, worse),
        None => Ok(()),
    }
}

/// The command that resumes a record. One that holds programs runs them only where their study is named.
pub(crate) fn write_resume_command(asked: &StudyOptions, record: &Record) -> String {
    let mut command = "stacklab run".to_owned();
    if let (Ok(campaign), Some(study)) = (record.campaign(), &asked.study)
        && study_of(&campaign).is_ok_and(|study| !study.programs.is_empty())
    {
        command += &format!(" {}", quote_file(study));
        if let Some(scale) = &campaign.scale {
            command += &format!(" --scale {}", quote_file(scale));
        }
        // With what leaves out the programs that were not installed.
        for setting in &campaign.settings {
            command += &format!(" --set {}", quote_file(setting));
        }
    }
    format!("{command} --resume --out {}", quote_file(record.path()))
}

/// Of the commands that write records, this one alone can also resume the one that exists.
fn refuse_existing(options: &RunOptions) -> Result<(), Failure> {
    match &options.out {
        Some(path) if path.is_dir() => {
            Err(Failure::usage(format!("--out {} is a folder: name a file in it", path.display())))
        }
        Some(path) if !options.resume && path.exists() => {
            let reason = StoreError::Exists(path.clone());
            Err(Failure::new(RECORD, format!("{reason}, or resume it with --resume")))
        }
        _ => Ok(()),
    }
}

/// Fails if a candidate is worse by more than is allowed, with a line for each comparison.
fn refuse_worse(findings: &Findings, allowed: f64) -> Result<(), Failure> {
    let of = findings.comparisons.len();
    let open = findings.comparisons.iter().filter(|comparison| !comparison.is_answer()).count();
    if open > 0 {
        note(&format!(
            "stacklab: warning: {open} of {} without a verdict, which does not fail (the report says why)",
            count(of, "comparison")
        ));
    }
    let worse = stacklab_analysis::worse(findings, allowed);
    for comparison in &worse {
        note(&format!("stacklab: worse: {}", stacklab_report::worse(comparison)));
    }
    let percent = 100.0 * allowed;
    let n = worse.len();
    if n == 0 {
        return Ok(());
    }
    let text = format!(
        "the candidate is worse by more than {percent} %, or lacks a figure, in {n} of {}",
        count(of, "comparison")
    );
    Err(Failure::new(WORSE, text))
}

/// Measures or resumes a study. Returns the record and how measuring ended: after an interruption, the measured part
/// is still reported.
pub(crate) fn campaign(options: &RunOptions) -> Result<(Record, Result<(), CampaignError>), Failure> {
    let interrupted = interrupt_flag()?;
    let mut request = ask(options)?;
    let plan = Plan::new(&request.study, request.campaign.seed);
    plan.warn_of_budget(&request.study).iter().for_each(|warning| note(&format!("stacklab: {warning}")));
    for warning in request.study.empty_comparisons() {
        note(&format!("stacklab: {warning}"));
    }
    let load_before = LoadSample::now();
    let programs = Programs::of(&request.study, interrupted)?;
    let reached = reach(&request.study, options.copy_agent)?;
    let routed = enter_for(&request.study, options)?;
    let mut rigs = show_seconds("building the testbed", || {
        Rigs::build(&request.study, request.campaign.seed, reached, routed, interrupted)
    })?;
    let testbed_description = rigs.describe(&request.study) + &programs.describe();
    let mut record = open_record(&mut request, &mut rigs, &testbed_description)?;
    if options.resume
        && let Some(moved) = describe_moves(&record.hosts()?, &[]).last()
    {
        note(&format!("stacklab: {moved}"));
    }
    let kept =
        if options.is_record_kept { format!(", record {}", record.path().display()) } else { String::new() };
    note(&format!("{}\n{testbed_description}\nseed {}{kept}", request.study.title, plan.seed()));
    let busy = load_before.until(&LoadSample::now()).busy();
    busy.iter().for_each(|warning| note(&format!("stacklab: {warning}")));
    // Runs that are sampled give no verdicts.
    let progress = Progress::new(options.sample_period_ns.is_some());
    let measured = measure(
        &request.study,
        &plan,
        |arms: &[Trial], earlier: &[RunRecord]| rigs.run(&request.study, &plan, arms, earlier),
        &mut record,
        progress,
    );
    if interrupted.load(Ordering::Relaxed) {
        // That may take a while, and a second signal ends this program at once.
        note("stacklab: interrupted: ending the testbed");
    }
    drop(rigs);
    // Without a record there is nothing to report; what there is of one is reported, and why it ended.
    match measured {
        Err(error @ CampaignError::Store(_)) => {
            Err(Failure::resumable(error, &write_resume_command(&options.study, &record)))
        }
        measured => Ok((record, measured)),
    }
}

/// What is to be measured. All errors of the request are detected before anything is built.
fn ask(options: &RunOptions) -> Result<CampaignRequest, Failure> {
    let request =
        if options.resume { CampaignRequest::resume(options)? } else { CampaignRequest::new(options)? };
    if options.fail_on.is_some() && request.study.comparisons.is_empty() {
        return Err(Failure::usage("--fail-on needs a study with a [[comparison]]"));
    }
    request.study.labs().iter().try_for_each(|(_, services)| services::check(services))?;
    images_are_here(&request.study)?;
    report_left_out(&request.left_out);
    Ok(request)
}

/// Enters the user namespace in which a testbed is built, if it has to be one, and decides where routers are. What is
/// said stands before the seconds in which guests boot and nothing else is.
fn enter_for(study: &Study, options: &RunOptions) -> Result<Option<RoutedPlacement>, Failure> {
    let builds = study.systems().iter().any(Systems::are_built);
    if builds && enter()? == Privilege::UserNamespace {
        note("stacklab: not root: building the testbed in a user namespace");
    }
    let routed = RoutedPlacement::of(study, &options.placement.in_vm)?;
    if let Some(place) = routed.as_ref().and_then(RoutedPlacement::guest_and_why) {
        note(&format!("stacklab: {place}"));
    }
    let guests = guests(study);
    if !guests.is_empty() {
        let names: Vec<String> = guests.iter().map(System::to_string).collect();
        note(&format!("stacklab: booting guests: {} ..", names.join(", ")));
    }
    Ok(routed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_run_advises_to_resume_an_existing_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stacklab");
        std::fs::write(&path, "").unwrap();
        let mut options = RunOptions { out: Some(path), ..RunOptions::default() };
        let failure = refuse_existing(&options).unwrap_err();
        assert!(
            failure.printable_reason().ends_with("with --out, or resume it with --resume"),
            "{failure:?}"
        );
        let Err(failure) = campaign(&options) else { panic!("the record exists") };
        assert!(
            failure.printable_reason().ends_with("name another file with --out"),
            "`explain`: {failure:?}"
        );
        options.resume = true;
        assert!(refuse_existing(&options).is_ok());
    }
}
