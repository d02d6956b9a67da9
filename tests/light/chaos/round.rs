//! One round: a campaign, a disturbance, and what must hold afterwards.

use super::campaign::{Campaign, Kind};
use super::clock;
use super::disturbance::{Disturbance, Disturbed};
use super::memory_group::MemoryGroup;
use crate::support::leftovers::Scene;
use crate::support::planned::measured;
use crate::support::program::{Outcome as ProgramOutcome, children, code};
use crate::support::random::Random;
use crate::support::sys::monotonic_ns;
use stacklab_model::{Role, RunRecord, SplitMix64};
use stacklab_store::Record;
use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The maximum time until everything but the record is removed.
const SOON: Duration = Duration::from_secs(2);
/// What a campaign may take after its disturbance: the half minute of a trial, and the trials that are left.
const LIMIT: Duration = Duration::from_secs(40);
/// The disturbance comes within this time, milliseconds.
const WITHIN_MS: u64 = 1800;
/// A run that was disturbed for as long says so; so does one that was disturbed for half of its time.
const DISTURBED_NS: u64 = 300_000_000;

/// What came of a round.
pub(super) struct Outcome {
    /// The disturbance.
    pub kind: String,
    /// From the disturbance's end to the campaign's.
    pub waited: Duration,
    /// Whether the campaign ended early.
    pub ended: bool,
    pub has_record: bool,
    pub is_resumed: bool,
    text: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The kind of campaign and the disturbance of a seed, and what else it draws.
pub(super) fn drawn(seed: u64, is_long: bool) -> (Kind, Disturbance, Random) {
    let mut random = Random(SplitMix64(seed));
    let kind = Kind::draw(&mut random, is_long);
    let disturbance = Disturbance::draw(&mut random, kind, is_long);
    (kind, disturbance, random)
}

/// Disturbs a campaign of this kind like this; fails if something does not hold.
///
/// # Errors
/// Why this machine has not what would disturb it.
pub(super) fn disturbed(
    kind: Kind,
    disturbance: Disturbance,
    random: &mut Random,
    seed: u64,
) -> Result<Outcome, String> {
    let campaign = Campaign::new(random, kind, disturbance.place());
    let moment = Duration::from_millis(random.below(WITHIN_MS));
    println!("seed {seed}: {kind}: {disturbance} after {moment:?}");
    let group = match disturbance {
        Disturbance::MemoryGroup(_, bytes) => Some(MemoryGroup::new(bytes)?),
        _ => None,
    };
    let scene = Scene::now();
    let running = campaign.begin();
    sleep(moment);
    let disturbed = disturbance.disturb(&campaign, &running, group.as_ref(), random);
    let since = Instant::now();
    let outcome = running.end(LIMIT);
    let waited = since.elapsed();
    let ended = outcome.status.code();
    check_end(&campaign, disturbance, &outcome);
    let also = describe_effect(&campaign, disturbance, group.as_ref(), &outcome);
    campaign.leave();
    // The folder of a killed campaign's guests is removed by the next one.
    scene.assert_restored_but(&campaign.program, &campaign.files(), SOON, "TMPDIR/stacklab-guests-");
    let has_record = campaign.record().exists();
    let mut kept = 0;
    if has_record {
        kept = whole(&campaign, disturbance, disturbed);
    }
    if disturbance == Disturbance::Frozen && disturbed.is_some() && ended != Some(code::DONE) {
        assert!(outcome.stderr.contains("did not answer within"), "{outcome}");
        assert!(["sender", "receiver"].iter().any(|host| outcome.stderr.contains(host)), "{outcome}");
    }
    let is_resumed = resume(&campaign, &scene);
    let ended = ended != Some(code::DONE);
    let what = if ended { "ended by it" } else { "went on" };
    let text = format!(
        "{}: {disturbance}{also} after {} ms: {what} after {:.1} s, {kept} runs kept",
        campaign.kind,
        moment.as_millis(),
        waited.as_secs_f64()
    );
    Ok(Outcome { kind: disturbance.to_string(), waited, ended, has_record, is_resumed, text })
}

/// Fails unless the campaign ended as it may after the disturbance.
fn check_end(campaign: &Campaign, disturbance: Disturbance, outcome: &ProgramOutcome) {
    let ended = outcome.status.code();
    // What limits the coordinator limits the guests that it starts afterwards, which write files, too.
    let is_guests =
        matches!(campaign.kind, Kind::Guests(_)) && matches!(disturbance, Disturbance::NoLongerFiles(_));
    assert!(expected(disturbance, ended) || is_guests, "exit code {ended:?} after {disturbance}: {outcome}");
    // Without memory for its stack a thread cannot begin.
    let is_out_of_memory =
        matches!(disturbance, Disturbance::NoMoreMemory(..) | Disturbance::MemoryGroup(..));
    assert!(is_out_of_memory || !outcome.stderr.contains("panicked"), "{outcome}");
}

/// How often the disturbance met the campaign, if that can be counted.
fn describe_effect(
    campaign: &Campaign,
    disturbance: Disturbance,
    group: Option<&MemoryGroup>,
    outcome: &ProgramOutcome,
) -> String {
    if let Some(group) = group {
        return format!(", {} killed by the kernel", group.killed());
    }
    if let Disturbance::ClockSet(_) = disturbance {
        let steps = clock::stepped(&campaign.program);
        assert!(steps > 0, "the clock was never set: {outcome}");
        return format!(", {steps} times");
    }
    String::new()
}

/// Whether a campaign may end like this; without a code it was killed by a signal.
fn expected(disturbance: Disturbance, ended: Option<i32>) -> bool {
    use super::disturbance::Whom::{Coordinator, Host};
    // Before the hosts are there, the testbed cannot be made.
    let host = [Some(code::DONE), Some(code::HOST), Some(code::TESTBED)];
    match disturbance {
        Disturbance::Signal(Coordinator, "KILL") | Disturbance::StoppedThenKilled(Coordinator, _) => {
            matches!(ended, None | Some(code::DONE))
        }
        Disturbance::Signal(Coordinator, _) | Disturbance::TwoInterrupts => {
            // A signal that comes before the handlers are there ends the program at once.
            matches!(ended, None | Some(code::DONE | code::INTERRUPTED))
        }
        Disturbance::Signal(Host, _) | Disturbance::StoppedThenKilled(Host, _) => host.contains(&ended),
        Disturbance::MemoryGroup(Host, _) => host.contains(&ended),
        Disturbance::Stopped(..) | Disturbance::ClockSet(_) => ended == Some(code::DONE),
        Disturbance::Frozen => host.contains(&ended),
        Disturbance::FullDisk(_) | Disturbance::NoLongerFiles(_) | Disturbance::BrokenDisk => {
            matches!(ended, Some(code::DONE | code::RECORD))
        }
        // Aborted, or an error of whichever step it met.
        Disturbance::NoMoreMemory(..) | Disturbance::MemoryGroup(Coordinator, _) => true,
        Disturbance::LinkDown(_) => matches!(ended, Some(code::DONE | code::TESTBED | NOTHING_VALID)),
    }
}

/// No run was valid.
const NOTHING_VALID: i32 = 6;

/// Fails unless the record opens, its report can be had, it is the plan's beginning, and what was disturbed is not
/// valid without a warning. Returns the number of its runs.
fn whole(campaign: &Campaign, disturbance: Disturbance, disturbed: Option<Disturbed>) -> usize {
    let path = campaign.record();
    campaign.program.run(&["report", super::campaign::RECORD]).expect(code::DONE);
    let record = Record::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let runs = record.runs().unwrap();
    let kept = measured(&path);
    assert_eq!(kept.len(), runs.len());
    if let Some(planned) = campaign.planned() {
        assert!(planned.starts_with(&kept), "what is kept is not the plan's beginning: {kept:?}");
    }
    if let (Disturbance::LinkDown(_), Some(disturbed)) = (disturbance, disturbed) {
        let up_unix_ns = unix_ns().saturating_sub(monotonic_ns() - disturbed.over);
        for run in runs.iter().filter(|run| run.started_unix_ns > up_unix_ns) {
            assert!(run.is_valid(), "{} began with the link up again: {:?}", run.trial, run.status);
        }
    }
    if let Disturbance::ClockSet(_) = disturbance {
        runs.iter().for_each(|run| clock::shows_no_step(run, &record.host_reports(&run.trial).unwrap()));
    }
    // Guests have clocks of their own.
    let has_own_clocks = matches!(campaign.kind, Kind::Guests(_));
    if let Some(disturbed) = disturbed.filter(|_| disturbance.is_of_traffic() && !has_own_clocks) {
        // The next block has another testbed, which is whole.
        let mut block = None;
        for run in &runs {
            let reports = record.host_reports(&run.trial).unwrap();
            if reports.iter().any(|report| report.sent.measured > 0 && report.sent.first_ns <= disturbed.from)
            {
                block = block.max(Some(run.trial.block));
            }
        }
        for run in &runs {
            if Some(run.trial.block) == block && run.is_valid() && run.warnings.is_empty() {
                was_not_disturbed(&path, &record, run, disturbed);
            }
        }
    }
    runs.len()
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn was_not_disturbed(path: &Path, record: &Record, run: &RunRecord, disturbed: Disturbed) {
    for report in record.host_reports(&run.trial).unwrap().iter().filter(|report| report.role == Role::Sender)
    {
        let whole = [(report.sent.first_ns, report.sent.last_ns)];
        let slices: Vec<_> = report.slices.iter().map(|slice| (slice.first_ns, slice.last_ns)).collect();
        for (first, last) in if slices.is_empty() { &whole[..] } else { &slices } {
            let meanwhile = disturbed.to.min(*last).saturating_sub(disturbed.from.max(*first));
            let most = DISTURBED_NS.min((last - first) / 2).max(1);
            assert!(
                meanwhile < most,
                "{}: {} was disturbed for {} of {} ms, and is valid without a warning",
                path.display(),
                run.trial,
                meanwhile / 1_000_000,
                (last - first) / 1_000_000
            );
        }
    }
}

/// Goes on with a campaign; fails unless its record then is its plan. An agent that listens must serve again.
fn resume(campaign: &Campaign, scene: &Scene) -> bool {
    if let Some(listening) = &campaign.agent {
        let start = Instant::now();
        while !children(listening.agent.pid()).is_empty() {
            assert!(start.elapsed() < SOON, "the agent serves somebody who has gone");
            sleep(Duration::from_millis(10));
        }
        campaign
            .program
            .run(&["measure", "udp", "127.0.0.1", "-n", "10", "-p", &listening.port])
            .expect(code::DONE);
        return false;
    }
    let outcome = campaign.resume().end(LIMIT);
    // Where all runs are kept, and none of them is valid, there is nothing to add.
    let ended = outcome.status.code();
    assert!(matches!(ended, Some(code::DONE | NOTHING_VALID)), "{outcome}");
    assert_eq!(Some(measured(&campaign.record())), campaign.planned(), "{outcome}");
    scene.assert_restored(&campaign.program, &campaign.files(), SOON);
    true
}
