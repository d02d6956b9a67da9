//! What `stacklab run` is asked to measure, and the record for it: a new one, or one that is resumed.

use crate::commands::run::RunOptions;
use crate::failure::Failure;
use crate::missing_programs::{RunnableStudy, check_runnable};
use stacklab_campaign::record::{ImportedStudy, study_of};
use stacklab_campaign::resumed::{find_differences, machine_name};
use stacklab_campaign::rig::{Rigs, TrialHosts};
use stacklab_campaign::runs::read_runs;
use stacklab_campaign::schedule::Schedule;
use stacklab_campaign::sources::{StudySource, new_record, new_seed, newest_record};
use stacklab_explain::list_missing_counts;
use stacklab_model::{CpuScope, Metric, Probe, quote_file};
use stacklab_store::{Campaign, HostRow, Record, StoreError};
use stacklab_study::{Plan, Study};
use std::path::{Path, PathBuf};

/// What to run, and where to record it.
pub(super) struct CampaignRequest {
    pub(super) study: Study,
    pub(super) campaign: Campaign,
    /// The programs that are not installed here, a line for those that need the same files.
    pub(super) left_out: Vec<String>,
    record: Option<Record>,
    path: PathBuf,
}

impl CampaignRequest {
    pub(super) fn new(options: &RunOptions) -> Result<Self, Failure> {
        let runnable = check_runnable(&options.study)?;
        if options.fail_on.is_some() {
            runnable.refuse_left_out()?;
        }
        let RunnableStudy { source, study, settings, left_out } = runnable;
        let path = options.out.clone().unwrap_or_else(|| new_record(&source.name));
        if path.exists() {
            return Err(StoreError::Exists(path).into());
        }
        let campaign = Campaign {
            scale: options.study.scale.clone(),
            settings,
            seed: options.study.seed.unwrap_or_else(new_seed),
            sample_period_ns: options.sample_period_ns,
            ..source.campaign()
        };
        Ok(CampaignRequest { study, campaign, left_out, record: None, path })
    }

    pub(super) fn resume(options: &RunOptions) -> Result<Self, Failure> {
        let asked = &options.study;
        let path = match &options.out {
            Some(path) => path.clone(),
            None => newest_record(asked.study.as_deref())?,
        };
        let record = Record::open(&path)?;
        let campaign = record.campaign()?;
        ImportedStudy::refuse(&campaign, &path.display().to_string())?;
        refuse_changes(options, &campaign, &path)?;
        if campaign.sample_period_ns.is_some() {
            return Err(Failure::usage(format!(
                "{} is of `stacklab explain`, which samples the processors meanwhile: run that again",
                path.display()
            )));
        }
        let study = study_of(&campaign)?;
        // Settings of the record may change the commands of its study, too.
        if !study.programs.is_empty()
            && (asked.study.is_none() || asked.check()?.1.programs != study.programs)
        {
            return Err(Failure::usage(format!(
                "{} would run the commands that it holds: name their study too, `stacklab run STUDY --resume --out {}`, with the --set \
                 and --scale of the record, which must have the same commands",
                path.display(),
                quote_file(&path)
            )));
        }
        Ok(CampaignRequest { study, campaign, left_out: Vec::new(), record: Some(record), path })
    }
}

/// The record to resume, or a new one, with the hosts of this testbed. On another testbed or machine a record is
/// resumed only if nothing is left that depends on it.
pub(super) fn open_record(
    request: &mut CampaignRequest,
    rigs: &mut Rigs,
    testbed_description: &str,
) -> Result<Record, Failure> {
    let mut hosts = rigs.hosts()?;
    hosts.iter_mut().for_each(|host| host.facts.machine_name = machine_name());
    let Some(record) = request.record.take() else {
        let campaign = Campaign {
            testbed_description: testbed_description.to_owned(),
            cpu_scope: cpu_scope(request, rigs),
            ..request.campaign.clone()
        };
        return with_hosts(Record::create(&request.path, &campaign)?, &hosts);
    };
    let refused = refuse_another_place(request, testbed_description)
        .and_then(|()| refuse_another_machine(&record, &hosts));
    match refused {
        Ok(()) => with_hosts(record, &hosts),
        Err(_) if is_complete(request, &record)? && !counts_here(&record, &request.study)? => Ok(record),
        Err(refused) => Err(refused),
    }
}

fn with_hosts(mut record: Record, hosts: &[HostRow]) -> Result<Record, Failure> {
    hosts.iter().try_for_each(|host| record.put_host(host))?;
    Ok(record)
}

/// What the CPU time of hosts is of, in the trials that it is asked of.
fn cpu_scope(request: &CampaignRequest, rigs: &Rigs) -> CpuScope {
    let study = &request.study;
    let asked = study.probes.iter().filter(|probe| probe.metrics.iter().copied().any(Metric::is_host_cpu));
    let asked: Vec<Probe> = asked.map(|probe| probe.probe).collect();
    let plan = Plan::new(study, request.campaign.seed);
    match plan.interleaves(|probe| asked.is_empty() || asked.contains(&probe)) {
        Some(true) => CpuScope::Threads,
        Some(false) => rigs.cpu_scope(study),
        None => CpuScope::Various,
    }
}

/// Whether all runs of the plan are in the record: then no figure can come from another machine.
fn is_complete(request: &CampaignRequest, record: &Record) -> Result<bool, Failure> {
    let plan = Plan::new(&request.study, request.campaign.seed);
    Ok(Schedule::new(&request.study, &plan).walk(&read_runs(record)?).has_ended)
}

/// Whether instructions are to be counted that depend on this machine: those of programs, which are its own. Those of
/// messages are counted in an emulated machine.
fn counts_here(record: &Record, study: &Study) -> Result<bool, Failure> {
    Ok(!study.programs.is_empty() && !list_missing_counts(record, study)?.is_empty())
}

/// Routed testbeds may be on this kernel or in a guest, and hosts on any CPUs that this program may use. A resumed
/// campaign must use the same ones, and programs of the same versions.
fn refuse_another_place(request: &CampaignRequest, testbed_description: &str) -> Result<(), Failure> {
    if request.campaign.testbed_description == testbed_description {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} cannot be resumed on another testbed: use the same machine, CPUs, --in-vm and program versions, or start a new record\n\
         it was: {}\nit is:  {testbed_description}",
        request.path.display(),
        request.campaign.testbed_description
    )))
}

/// Figures of another machine or kernel are not those of the same testbed.
fn refuse_another_machine(record: &Record, hosts: &[HostRow]) -> Result<(), Failure> {
    let differences = find_differences(&record.hosts()?, hosts);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} cannot be resumed on another machine or kernel: {}; resume it where it began, or start a new record",
        record.path().display(),
        differences.join("; ")
    )))
}

/// A resumed campaign keeps its plan, so options that would change it are refused rather than ignored.
fn refuse_changes(options: &RunOptions, campaign: &Campaign, path: &Path) -> Result<(), Failure> {
    let asked = &options.study;
    let mut changed = Vec::new();
    if let Some(study) = &asked.study
        && StudySource::read(Some(study))?.text != campaign.study_text
    {
        changed.push(format!("study ({})", study.display()));
    }
    if asked.scale.is_some() && asked.scale != campaign.scale {
        changed.push("--scale".to_owned());
    }
    let settings = asked.all_settings();
    if !settings.is_empty() && settings != campaign.settings {
        changed.push(if asked.without.is_empty() { "--set" } else { "--set or --without" }.to_owned());
    }
    if asked.seed.is_some_and(|seed| seed != campaign.seed) {
        changed.push("--seed".to_owned());
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} cannot be resumed with another {}: leave it out, or start a new record",
        path.display(),
        changed.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{EndCounts, Explanation, Family, ProgramCell, ProgramCounts};

    const PROGRAMS: &str = r#"
title = "Two servers"
[[program]]
name = "one"
server = "one {port}"
client = "get {url_host} {requests}"
[[program]]
name = "other"
server = "other {port}"
client = "get {url_host} {requests}"
[factors]
family = ["ipv4"]
[probe.program]
metrics = ["duration"]
[[comparison]]
factor = "program"
baseline = "one"
candidate = "other"
instructions = true
"#;

    fn create_record(folder: &Path, text: &str) -> (Record, Study) {
        let source = StudySource { name: "x".to_owned(), text: text.to_owned() };
        let study = source.check(None, &[]).unwrap();
        let record = Record::create(&folder.join("x.stacklab"), &source.campaign()).unwrap();
        (record, study)
    }

    fn create_cell(program: &str) -> ProgramCell {
        let end = EndCounts { rounds: vec![[1000, 1000]], functions: Vec::new() };
        let label = format!("IPv4 {program}");
        ProgramCell {
            program: program.to_owned(),
            family: Family::Ipv4,
            label,
            client: end.clone(),
            server: end,
        }
    }

    #[test]
    fn counts_of_programs_need_the_same_machine() {
        let folder = tempfile::tempdir().unwrap();
        let (mut record, study) = create_record(folder.path(), PROGRAMS);
        assert!(counts_here(&record, &study).unwrap());
        let [pair] = &study.list_counted_pairs()[..] else { panic!("one pair is compared") };
        // One that could not be counted is tried again.
        record.put_explanations(std::slice::from_ref(&pair.explanation)).unwrap();
        assert!(counts_here(&record, &study).unwrap());
        let [qemu, cpu] = ["7.2.22", "max"].map(str::to_owned);
        let cells = vec![create_cell("one"), create_cell("other")];
        let counts = ProgramCounts { qemu, cpu, requests: [1, 2], cells, pairs: vec![[0, 1]] };
        let counted = Explanation { programs: Some(Box::new(counts)), ..pair.explanation.clone() };
        record.put_explanations(&[counted]).unwrap();
        assert!(!counts_here(&record, &study).unwrap());
    }

    #[test]
    fn nothing_else_is_counted_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let (record, study) = create_record(folder.path(), &PROGRAMS.replace("instructions = true", ""));
        assert!(!counts_here(&record, &study).unwrap());
    }
}
