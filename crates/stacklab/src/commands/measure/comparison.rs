//! `stacklab measure .. --against FAMILY`: both families to one host in turns, until the verdicts are sure.

use crate::commands::measure::options::CommonOptions;
use crate::commands::measure::peers::{BothWays, PeerProgram};
use crate::commands::measure::study::{Arms, arms_at_low_rate, arms_of_connections, study_text, trial_ns};
use crate::failure::{Failure, NO_DATA};
use crate::output::{print_text, width};
use stacklab_agent::client::Target;
use stacklab_campaign::notice::note;
use stacklab_campaign::progress::Progress;
use stacklab_campaign::record::{conclude, has_a_block};
use stacklab_campaign::rig::TrialHosts;
use stacklab_campaign::single::{MeasureRequest, check_size};
use stacklab_campaign::slow_path::{PathSample, SlowTrials, trials_in_turns};
use stacklab_campaign::sources::{StudySource, new_seed};
use stacklab_campaign::trial::clock::one_machine;
use stacklab_campaign::{CampaignError, measure};
use stacklab_model::{
    Comparison as Compared, CpuScope, Family, Findings, Length, Metric, Probe, Question, RunRecord, Trial,
    Verdict, say,
};
use stacklab_report::{OutputFormat, WIDTH, compact, estimate_seconds_to_settle, render};
use stacklab_store::{Campaign, HostRow, Record, StoreError};
use stacklab_study::{Plan, Study};
use stacklab_traffic::protocol::AgentError;
use std::path::PathBuf;
use std::slice::from_ref;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tempfile::TempDir;

/// The longest time that is advised, seconds.
const MAX_ADVISED_S: f64 = 1800.0;

/// How to get the answers that are missing.
fn advice(findings: &Findings) -> String {
    estimate_seconds_to_settle(findings).map_or_else(String::new, |seconds| describe_wait(seconds.ceil()))
}

fn describe_wait(seconds: f64) -> String {
    if seconds > MAX_ADVISED_S {
        return "Undecided: at the current variance, half of the open comparisons would need more than half an hour: measure again \
                when this machine and the path are quieter.\n"
            .to_owned();
    }
    let time = if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) };
    format!(
        "Undecided: at the current variance, about {time} (-t {seconds:.0}) would decide half of the open comparisons.\n"
    )
}

/// A study of both families to one host, and where its record will be.
pub(super) struct FamilyComparison {
    study: Study,
    source: StudySource,
    path: PathBuf,
    json: bool,
    /// Holds the record if the user wants none.
    _folder: Option<TempDir>,
}

impl FamilyComparison {
    /// Checks the study, and that its record can be made.
    pub(super) fn new(common: &CommonOptions, study_text: String) -> Result<Self, Failure> {
        let source = StudySource { name: "measure.toml".to_owned(), text: study_text };
        let study = check(&source)?;
        if let Some(path) = common.out.as_ref().filter(|path| path.exists()) {
            return Err(StoreError::Exists(path.clone()).into());
        }
        // Without a name, the record is only for this verdict. With one nothing else is made, which a kill would leave
        // behind.
        let folder = if common.out.is_none() { Some(tempfile::tempdir()) } else { None };
        let folder = folder.transpose().map_err(Failure::step("create a folder for the record"))?;
        let unnamed = folder.as_ref().map(|folder| folder.path().join("measure.stacklab"));
        let path = common.out.clone().or(unnamed).expect("one of both is there");
        Ok(FamilyComparison { study, source, path, json: common.json, _folder: folder })
    }

    /// Measures until the verdicts are sure or the time is over, and prints them. What was measured until an error is
    /// printed.
    pub(super) fn measure(self, hosts: &mut dyn TrialHosts, rows: Vec<HostRow>) -> Result<(), Failure> {
        let FamilyComparison { study, source, path, json, _folder } = self;
        let campaign = source.campaign();
        let plan = Plan::new(&study, campaign.seed);
        let cpu_scope = if plan.interleaves_any() { CpuScope::Threads } else { hosts.cpu_scope(&study) };
        let testbed_description = hosts.describe(&study);
        let campaign = Campaign { testbed_description, cpu_scope, ..campaign };
        let mut record = Record::create(&path, &campaign)?;
        for row in &rows {
            record.put_host(row)?;
        }
        let progress = Progress::new(false);
        let measured = measure(
            &study,
            &plan,
            |arms: &[Trial], earlier: &[RunRecord]| hosts.run(&study, &plan, arms, earlier),
            &mut record,
            progress,
        );
        let findings = conclude(&record)?;
        if measured.is_ok() || has_a_block(&record)? {
            print_text(&match json {
                true => render(&findings, OutputFormat::Json, WIDTH),
                false => compact(&findings, width()) + &advice(&findings),
            })?;
        } else {
            say!("stacklab: no block is complete: there is nothing to compare");
        }
        if _folder.is_none() {
            say!("The record: {} (formats: stacklab report --help)", path.display());
        }
        match measured {
            // There is no record to resume.
            Err(CampaignError::Interrupted(_)) => Err(AgentError::Interrupted.into()),
            Ok(()) if findings.valid_runs == 0 => Err(Failure::nothing_valid()),
            Ok(()) => find_obstacle(&findings.comparisons).map_or(Ok(()), |why| {
                Err(Failure::new(NO_DATA, format!("{why} (more is in the report above)")))
            }),
            Err(error) => Err(error.into()),
        }
    }
}

/// The shortest comparison, nanoseconds.
const MIN_TIME_NS: u64 = 1_000_000_000;

fn check_size_and_time(request: &MeasureRequest) -> Result<(), Failure> {
    for family in Family::ALL {
        check_size(request, *family)?;
    }
    match request.length {
        Length::Time(..MIN_TIME_NS) => Err(Failure::usage("--against compares for at least a second: -t 1")),
        _ => Ok(()),
    }
}

/// Checks the study that the options make: what is wrong is said of the options, since nobody wrote a file.
fn check(source: &StudySource) -> Result<Study, Failure> {
    source.check(None, &[]).map_err(|error| match error {
        CampaignError::Study(errors) => {
            Failure::usage(format!("these options make no comparison of the families: {}", errors.describe()))
        }
        other => other.into(),
    })
}

/// Why the families are not compared: one of them loses everything, or nothing has a figure of both.
fn find_obstacle(comparisons: &[Compared]) -> Option<String> {
    if let Some(dead) = comparisons.iter().find_map(find_dead_family) {
        return Some(dead);
    }
    let mut first_reason = None;
    for compared in comparisons {
        let Verdict::Nothing(reason) = &compared.verdict else { return None };
        first_reason = first_reason.or(Some(reason));
    }
    first_reason.map(|reason| format!("nothing can be compared: {reason}"))
}

fn find_dead_family(compared: &Compared) -> Option<String> {
    let Question { baseline, candidate, metric, .. } = &compared.question;
    if *metric != Metric::Loss {
        return None;
    }
    let arms = [(baseline, &compared.baseline_estimate), (candidate, &compared.candidate_estimate)];
    let (cell, _) = arms.into_iter().find(|(_, loss)| loss.mean == Some(1.0))?;
    Some(format!("{} does not get through: all of its datagrams were lost", cell.family))
}

pub(super) fn against(
    common: &CommonOptions,
    request: &MeasureRequest,
    target: &Target<'_>,
    peer: &PeerProgram,
    baseline: Family,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    // Wrong options are found before a host is asked.
    check_size_and_time(request)?;
    let planned_arms = if peer.reports_slices() { Arms::Interleaved } else { Arms::Alternating };
    arms_at_low_rate(request)?;
    let text = study_text(common, request, baseline, planned_arms, true)?;
    check(&StudySource { name: "measure.toml".to_owned(), text })?;
    let ways = BothWays::find(target, peer)?;
    let mut connected = ways.connect(target, peer, common.reverse, interrupted)?;
    let hosts = &mut *connected.hosts;
    let arms = match planned_arms {
        Arms::Interleaved => arms(common, request, baseline, hosts)?,
        other => other,
    };
    let rows = hosts.hosts()?;
    let is_one_machine = matches!(&rows[..], [one, other, ..] if one_machine(&one.facts, &other.facts));
    // Of slices, the CPU time is that of the threads that measure.
    let counts_cpu = arms == Arms::Interleaved || !is_one_machine;
    let text = study_text(common, request, baseline, arms, counts_cpu)?;
    FamilyComparison::new(common, text)?.measure(hosts, rows)
}

/// Looks at the path of each family, and decides how they are compared: interleaved, or on a slow path by trials in
/// turns.
fn arms(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    hosts: &mut dyn TrialHosts,
) -> Result<Arms, Failure> {
    let Length::Time(time_ns) = request.length else { return Ok(Arms::Interleaved) };
    if request.probe == Probe::Connect {
        return Ok(arms_of_connections(time_ns));
    }
    if request.probe != Probe::Stream {
        return Ok(Arms::Interleaved);
    }
    if let Some(arms) = arms_at_low_rate(request)? {
        note("stacklab: at this rate slices have too few messages: the families have trials in turns");
        return Ok(arms);
    }
    let began = Instant::now();
    let text = study_text(common, request, baseline, Arms::Look, true)?;
    let study = check(&StudySource { name: "measure.toml".to_owned(), text })?;
    let plan = Plan::new(&study, new_seed());
    let trial_ns = trial_ns(time_ns);
    let mut shown = Vec::new();
    for (position, cell) in (0..).zip(&study.cells) {
        let trial = Trial { block: 0, position, cell: cell.clone(), probe: request.probe };
        let mut sample = look(hosts, &study, &plan, &trial)?;
        if sample.as_ref().is_some_and(|first| first.may_be_late(trial_ns)) {
            // A busy processor delays a trial as a slow path does, but seldom two in a row.
            let again = look(hosts, &study, &plan, &trial)?;
            sample = again.filter(|again| again.suits_slices(trial_ns)).or(sample);
        }
        shown.extend(sample);
    }
    if shown.iter().all(|path| path.suits_slices(trial_ns)) {
        return Ok(Arms::Interleaved);
    }
    let looked_ns = began.elapsed().as_nanos() as u64;
    let SlowTrials { trial_ns, send_buffer, slowest } =
        trials_in_turns(request.transport, time_ns, looked_ns, &shown).map_err(Failure::usage)?;
    note(&format!(
        "stacklab: the path is slow ({slowest}): the families are not interleaved in slices, but have trials in turns"
    ));
    Ok(Arms::Slow { trial_ns, send_buffer })
}

/// What a short trial shows of its family's path.
fn look(
    hosts: &mut dyn TrialHosts,
    study: &Study,
    plan: &Plan,
    trial: &Trial,
) -> Result<Option<PathSample>, Failure> {
    Ok(hosts.run(study, plan, from_ref(trial), &[])?.iter().find_map(PathSample::of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Cell, Estimate, Factor, Family, SizeOf, StopReason, Transport};

    fn make_comparison(metric: Metric, means: [f64; 2], verdict: Verdict) -> Compared {
        let [baseline, candidate] =
            [Family::Ipv4, Family::Ipv6].map(|family| Cell::new(family, Transport::Udp, SizeOf::Write, 1400));
        Compared {
            question: Question { factor: Factor::Family, baseline, candidate, metric, margin: 0.01 },
            baseline_estimate: Estimate { mean: Some(means[0]), ..Estimate::default() },
            candidate_estimate: Estimate { mean: Some(means[1]), ..Estimate::default() },
            effect: None,
            fitted: None,
            tests: None,
            explained: None,
            verdict,
            claimed_interval: None,
            stop_reason: StopReason::Decided,
            more_blocks: None,
            unpaired: None,
            is_bound_wide: false,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn a_time_that_is_needed_is_in_units_or_too_long() {
        assert!(describe_wait(19.0).contains("about 19 s (-t 19)"));
        assert!(describe_wait(600.0).contains("about 10 min (-t 600)"));
        assert!(describe_wait(24_406.0).contains("more than half an hour"));
    }

    fn compare_nothing(metric: Metric) -> Compared {
        make_comparison(metric, [0.0, 1.0], Verdict::Nothing("ipv6: none arrived".into()))
    }

    fn compare_loss(ipv6: f64) -> Compared {
        make_comparison(Metric::Loss, [0.0, ipv6], Verdict::Better("ipv4".into()))
    }

    #[test]
    fn a_family_that_loses_everything_is_named() {
        let throughput = compare_nothing(Metric::Throughput);
        assert_eq!(find_obstacle(&[throughput.clone(), compare_loss(0.99)]), None);
        let dead = find_obstacle(&[throughput.clone(), compare_loss(1.0)]).unwrap();
        assert_eq!(dead, "ipv6 does not get through: all of its datagrams were lost");
        let none = find_obstacle(&[throughput, compare_nothing(Metric::ReceiverCpuPerMessage)]).unwrap();
        assert_eq!(none, "nothing can be compared: ipv6: none arrived");
    }
}
