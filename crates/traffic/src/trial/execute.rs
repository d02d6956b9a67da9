//! Executes the transfers of a trial on two agents.

use crate::protocol::client::{AgentClient, AgentError, Pending};
use crate::protocol::message::{Answer, Request, SendArm};
use crate::trial::transfers::Transfer;
use stacklab_model::{Family, HostReport, Length, Pacing, TrialSpec};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Extra time for a trial in addition to its own length: connecting, draining and a busy machine.
pub(super) const SLACK: Duration = Duration::from_secs(120);
/// A trial that ends by message count is abandoned below this rate, messages per second.
const SLOWEST_PER_SECOND: f64 = 100.0;

/// Runs the transfers concurrently and returns both reports of each, sender first.
///
/// # Errors
/// The error of the first agent that failed, after all others have ended; at once when an agent is gone.
pub(crate) fn execute(
    mut agents: [&mut AgentClient; 2],
    transfers: &[Transfer],
) -> Result<Vec<[HostReport; 2]>, AgentError> {
    let limit =
        transfers.iter().map(|transfer| transfer.starts + longest(&transfer.spec)).max().unwrap_or(SLACK);
    let mut first_failure = None;
    let mut listening = Vec::new();
    for transfer in transfers {
        match listen(agents[transfer.to()], transfer) {
            Ok(place) => listening.push(place),
            Err(error) => {
                first_failure = Some(failure(error)?);
                break;
            }
        }
    }
    let mut sent: Vec<Option<HostReport>> = transfers.iter().map(|_| None).collect();
    if first_failure.is_none() {
        let sends = start_all(&mut agents, transfers, &listening)?;
        for (number, pending) in sends {
            match finish(agents[transfers[number].from], pending, "send", limit) {
                Ok(side) => sent[number] = Some(side),
                Err(error) => drop(first_failure.get_or_insert(failure(error)?)),
            }
        }
    }
    // The receivers are collected even when a sender failed, so that they do not wait forever. When a sender is gone,
    // the campaign ends, and the receivers with it.
    let mut host_reports = Vec::new();
    for ((transfer, (id, _)), sent) in transfers.iter().zip(listening).zip(sent) {
        let agent = &mut *agents[transfer.to()];
        let pending = agent.start(Request::Collect { listen: id }, "collect")?;
        match finish(agent, pending, "collect", limit) {
            Ok(received) => host_reports.extend(sent.map(|sent| [sent, received])),
            Err(error) => drop(first_failure.get_or_insert(failure(error)?)),
        }
    }
    first_failure.map_or(Ok(host_reports), Err)
}

/// Runs the arms of an interleaved trial, one transfer each, all in one direction. Returns both reports of each,
/// sender first.
///
/// # Errors
/// As [`execute`].
pub(crate) fn execute_in_turns(
    agents: [&mut AgentClient; 2],
    arms: &[Transfer],
    seed: u64,
) -> Result<Vec<[HostReport; 2]>, AgentError> {
    let limit = SLACK + arms.iter().map(|arm| longest(&arm.spec)).sum::<Duration>();
    let [from, to] = arms.first().map_or([0, 1], |arm| [arm.from, arm.to()]);
    let mut first_failure = None;
    let mut listening = Vec::new();
    for arm in arms {
        match listen(agents[to], arm) {
            Ok(place) => listening.push(place),
            Err(error) => {
                first_failure = Some(failure(error)?);
                break;
            }
        }
    }
    let mut sent = Vec::new();
    if first_failure.is_none() {
        let sends = arms.iter().zip(&listening).map(|(arm, (_, address))| send_arm(arm, *address));
        let request = Request::SendInTurns { arms: sends.collect(), seed };
        let pending = agents[from].start(request, "send in turns")?;
        match agents[from].finish(pending, limit) {
            Ok(Answer::ArmsDone(reports)) if reports.len() == arms.len() => sent = reports,
            Ok(_) => return Err(agents[from].confused("send in turns")),
            Err(error) => first_failure = Some(failure(error)?),
        }
    }
    // As for transfers at the same time: no receiver is left waiting.
    let mut host_reports = Vec::new();
    let mut sent = sent.into_iter();
    for (id, _) in listening {
        let pending = agents[to].start(Request::Collect { listen: id }, "collect")?;
        match finish(agents[to], pending, "collect", limit) {
            Ok(received) => host_reports.extend(sent.next().map(|sent| [sent, received])),
            Err(error) => drop(first_failure.get_or_insert(failure(error)?)),
        }
    }
    first_failure.map_or(Ok(host_reports), Err)
}

pub(super) fn send_arm(transfer: &Transfer, listening: SocketAddr) -> SendArm {
    let Transfer { path, spec, .. } = transfer;
    let spec = TrialSpec { family: Family::of(path.sender), ..spec.clone() };
    let to = SocketAddr::new(path.destination(), listening.port());
    SendArm { spec: Box::new(spec), from: path.sender, to }
}

/// Returns an error that only invalidates the run; other errors end the campaign.
pub(super) fn failure(error: AgentError) -> Result<AgentError, AgentError> {
    if matches!(error, AgentError::Failed { .. }) { Ok(error) } else { Err(error) }
}

pub(super) fn listen(agent: &mut AgentClient, transfer: &Transfer) -> Result<(u64, SocketAddr), AgentError> {
    // Behind a translator the receiver has the other family.
    let spec = TrialSpec { family: Family::of(transfer.path.receiver), ..transfer.spec.clone() };
    let request = Request::Listen { spec: Box::new(spec), address: transfer.path.receiver };
    match agent.ask(request, "listen", SLACK)? {
        (id, Answer::Listening { address }) => Ok((id, address)),
        _ => Err(agent.confused("listen")),
    }
}

/// Starts every sender at its start time. Returns the pending sends with their transfer numbers.
fn start_all(
    agents: &mut [&mut AgentClient; 2],
    transfers: &[Transfer],
    listening: &[(u64, SocketAddr)],
) -> Result<Vec<(usize, Pending)>, AgentError> {
    let mut order: Vec<usize> = (0..transfers.len()).collect();
    order.sort_by_key(|number| transfers[*number].starts);
    let beginning = Instant::now();
    let mut sends = Vec::new();
    for number in order {
        let transfer = &transfers[number];
        thread::sleep(transfer.starts.saturating_sub(beginning.elapsed()));
        let SendArm { spec, from, to } = send_arm(transfer, listening[number].1);
        sends.push((number, agents[transfer.from].start(Request::Send { spec, from, to }, "send")?));
    }
    Ok(sends)
}

pub(super) fn finish(
    agent: &mut AgentClient,
    pending: Pending,
    asked: &str,
    limit: Duration,
) -> Result<HostReport, AgentError> {
    match agent.finish(pending, limit)? {
        Answer::Done(side) => Ok(*side),
        _ => Err(agent.confused(asked)),
    }
}

fn longest(spec: &TrialSpec) -> Duration {
    let measured = match (spec.probe.length, spec.probe.pacing) {
        (Length::Time(ns), _) => ns as f64 / 1e9,
        (Length::Packets(packets), Pacing::Schedule(per_second)) => packets as f64 / per_second,
        (Length::Packets(packets), _) => packets as f64 / SLOWEST_PER_SECOND,
    };
    SLACK + Duration::from_nanos(spec.probe.warmup_ns) + Duration::from_secs_f64(measured.min(1e9))
}
