//! Runs one trial on two agents, and computes figures from their reports.

use crate::execute::{Sending, execute, of_transfer};
use crate::path::Path;
use crate::results;
use crate::results::interleaved::JointFigures;
use crate::slots::SlotLengths;
use crate::transfer::{Transfer, TransferRole};
use crate::transfers;
use crate::validate::{self, Limits};
use stacklab_model::{
    Direction, Drops, Ends, HostReport, Io, Length, Metric, Pacing, Probe, RunRecord, RunStatus, Shared,
    SizeOf, Trial, TrialSpec, Value, Warning,
};
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::stats::clock::{self, Offset};
use stacklab_traffic::timing::{SLACK, longest};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Length of the echo that measures the round trip.
const ECHO_NS: u64 = 250_000_000;
/// How long its ends poll, so that the round trip excludes wake-up times.
const POLL_NS: u64 = 1_000_000;

/// The reports of two agents on one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Duration, nanoseconds.
    pub wall_ns: u64,
    /// What bounds the numbers of the reports.
    pub limits: Limits,
    /// The reports of each transfer, the sender's first; or why an agent failed.
    pub reports: Result<Vec<Ends<HostReport>>, String>,
}

impl Collected {
    /// From the first measured message to the last one, nanoseconds; 0 if none was sent.
    pub fn sent_ns(&self) -> u64 {
        let sent = self.reports.iter().flatten().map(|ends| &ends.sender.sent);
        sent.filter(|sent| sent.measured > 0)
            .map(|sent| sent.last_ns.saturating_sub(sent.first_ns))
            .max()
            .unwrap_or(0)
    }
}

/// Result of one trial's reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Whether the trial was as planned.
    pub status: RunStatus,
    /// Every figure of its probe.
    pub values: BTreeMap<Metric, Value>,
    /// Where messages were lost.
    pub drops: Drops,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
    /// The reports that a record keeps: forward sender and receiver, then reverse sender and receiver.
    pub host_reports: Vec<HostReport>,
}

/// Runs one trial on two agents and collects their reports. In reverse, the second agent sends. An agent's failure is
/// not an error: it is in the reports.
pub fn collect(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    spec: &TrialSpec,
    direction: Direction,
) -> Result<Collected, AgentError> {
    collect_transfers(&mut [[sender, receiver]], &transfers::of(path, spec, direction), Sending::AtOnce)
}

/// Runs an interleaved trial, whose arms have paths and specifications. With `slots` each arm has its own pair of
/// agents and its time slots; else all have the same pair, and take turns. Returns
/// what was collected of each arm.
///
/// # Errors
/// As [`collect`]. An agent's failure is every arm's.
///
/// # Panics
/// For arms in both directions: each arm is one transfer.
pub fn collect_arms(
    pairs: &mut [[&mut AgentClient; 2]],
    arms: &[(&Path, &TrialSpec)],
    direction: Direction,
    seed: u64,
    slots: Option<SlotLengths>,
) -> Result<Vec<Collected>, AgentError> {
    assert_ne!(direction, Direction::Both, "an arm is one transfer");
    let transfers: Vec<Transfer> =
        arms.iter().flat_map(|(path, spec)| transfers::of(path, spec, direction)).collect();
    let sending = slots.map_or(Sending::InTurns(seed), |lengths| Sending::InSlots(seed, lengths));
    let Collected { started_unix_ns, wall_ns, limits, reports } =
        collect_transfers(pairs, &transfers, sending)?;
    // The arms share the time.
    let wall_ns = wall_ns / arms.len().max(1) as u64;
    let mut of_arms = Vec::new();
    for arm in 0..arms.len() {
        let reports = match &reports {
            Ok(reports) => Ok(vec![reports[arm].clone()]),
            Err(reason) => Err(reason.clone()),
        };
        let limits = Limits { processors: processors(of_transfer(pairs, arm)), ..limits };
        of_arms.push(Collected { started_unix_ns, wall_ns, limits, reports });
    }
    Ok(of_arms)
}

fn collect_transfers(
    pairs: &mut [[&mut AgentClient; 2]],
    transfers: &[Transfer],
    sending: Sending,
) -> Result<Collected, AgentError> {
    let started_unix_ns = now_unix_ns();
    let clock = Instant::now();
    let reports = match execute(pairs, transfers, sending) {
        Ok(host_reports) => Ok(host_reports),
        Err(AgentError::Failed { host, reason }) => Err(format!("{host} {reason}")),
        Err(error) => return Err(error),
    };
    let wall = clock.elapsed();
    let limits = limits(pairs, transfers, wall);
    Ok(Collected { started_unix_ns, wall_ns: wall.as_nanos() as u64, limits, reports })
}

/// What bounds the numbers of a trial that took this long.
fn limits(pairs: &mut [[&mut AgentClient; 2]], transfers: &[Transfer], wall: Duration) -> Limits {
    let patience = pairs.iter().map(|pair| pair[0].patience()).max().unwrap_or(1);
    let mut limits = Limits::of_time(wall);
    if patience > 1 {
        // A virtual clock runs as fast as the machine can: it may be ahead of the coordinator's.
        let each = transfers.iter().map(|transfer| longest(&transfer.spec)).sum::<Duration>();
        limits = Limits::of_time(wall.max((2 * each + SLACK).saturating_mul(patience)));
    }
    // Only who compared the clocks, or knows that there is one, knows more.
    let one_way = transfers.iter().all(|transfer| transfer.spec.clock_offset_ns != 0);
    Limits { processors: processors(&pairs[0]), one_way, ..limits }
}

fn processors(pair: &[&mut AgentClient; 2]) -> [Option<u32>; 2] {
    [pair[0].processors(), pair[1].processors()]
}

/// The figures of a trial, from its reports alone. With streams both ways, they are those of the stream from the
/// first agent to the second, except for the metrics that say otherwise.
///
/// `joint` are the joint figures of the arm of an interleaved trial, which replace its own. A report whose numbers
/// contradict each other or the `limits` makes the run invalid.
pub fn figures(
    path: &Path,
    spec: &TrialSpec,
    direction: Direction,
    reports: Result<Vec<Ends<HostReport>>, String>,
    joint: JointFigures,
    limits: &Limits,
) -> Figures {
    let host_reports = match reports {
        Ok(host_reports) => host_reports,
        Err(reason) => {
            return Figures {
                status: RunStatus::Invalid(vec![reason]),
                values: BTreeMap::new(),
                drops: Drops::default(),
                warnings: Vec::new(),
                host_reports: Vec::new(),
            };
        }
    };
    let transfers = transfers::of(path, spec, direction);
    let main = &transfers[0];
    let Ends { sender, receiver } = &host_reports[0];
    let mut reasons = joint.contradictions;
    reasons.extend(validate::transfers(&transfers, &host_reports, limits));
    let mut values = results::values(&main.spec, &main.path, sender, receiver);
    values.extend(joint.values);
    values.extend(transfers::secondary_values(&transfers, &host_reports));
    let drops = results::drops(&main.spec, sender, receiver);
    let mut warnings = Vec::new();
    for (transfer, Ends { sender, receiver }) in transfers.iter().zip(&host_reports) {
        for warning in results::warnings(&transfer.spec, &transfer.path, sender, receiver) {
            let text = format!("{}{}", transfer.prefix(), warning.text);
            warnings.push(Warning { text, ..warning });
        }
    }
    warnings.extend(transfers::overlap_warning(&transfers, &host_reports, spec.clock_offset_ns));
    warnings.extend(transfers::load_warning(&transfers, &host_reports, spec.clock_offset_ns));
    // A record keeps the two directions of the measured transfer, not the load streams.
    let kept = transfers.iter().zip(host_reports).filter(|(transfer, _)| transfer.role != TransferRole::Load);
    let host_reports = kept.flat_map(|(_, ends)| ends).collect();
    Figures { status: RunStatus::of(reasons), values, drops, warnings, host_reports }
}

/// Runs one trial between two agents and makes a run from their reports alone: invalid where an agent failed.
pub fn run_trial(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    trial: &Trial,
    spec: TrialSpec,
    direction: Direction,
) -> Result<RunRecord, AgentError> {
    let Collected { started_unix_ns, wall_ns, limits, reports } =
        collect(sender, receiver, path, &spec, direction)?;
    let Figures { status, values, drops, warnings, host_reports } =
        figures(path, &spec, direction, reports, JointFigures::default(), &limits);
    if status != RunStatus::Valid {
        // A host that is gone takes the link down and distorts the other host's report. The trial then gives no run,
        // and can be repeated.
        sender.hello()?;
        receiver.hello()?;
    }
    let trial = trial.clone();
    Ok(RunRecord {
        trial,
        spec,
        started_unix_ns,
        wall_ns,
        status,
        values: values.into(),
        drops,
        host_reports,
        warnings,
    })
}

/// Clock offset of the second agent's host from the first one's, measured with an echo over the path and the
/// transport of the trial. The inner result is the reason if it failed.
pub fn measure_offset(
    first: &mut AgentClient,
    second: &mut AgentClient,
    path: &Path,
    trial: &TrialSpec,
) -> Result<Result<Offset, String>, AgentError> {
    let mut spec = TrialSpec {
        token: trial.token.rotate_left(8) ^ 0x0c10_0c10,
        message_bytes: 64,
        size_of: SizeOf::Write,
        poll_ns: POLL_NS,
        io: Io::Send,
        flows: 1,
        clock_offset_ns: 0,
        // Default socket options: a trial's own options may delay small messages.
        tuning: Shared::default(),
        ..trial.clone()
    };
    spec.probe.probe = Probe::Echo;
    spec.probe.pacing = Pacing::Lockstep;
    spec.probe.length = Length::Time(ECHO_NS);
    spec.probe.warmup_ns = 0;
    spec.probe.metrics = Vec::new();
    let Collected { reports, limits, .. } = collect(first, second, path, &spec, Direction::Forward)?;
    Ok(reports.and_then(|reports| {
        let Some(ends) = reports.first() else { return Err("no host reported".to_owned()) };
        if let Some(reason) = validate::numbers(&spec, &limits, 0, ends.as_ref()).into_iter().next() {
            return Err(reason);
        }
        let least = ends.sender.received.least_round_trip;
        clock::offset(least).ok_or_else(|| "no message came back, or the agent is older".to_owned())
    }))
}
