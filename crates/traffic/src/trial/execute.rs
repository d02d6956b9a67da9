//! Executes the transfers of a trial on two agents.

use crate::protocol::client::{AgentClient, AgentError, Pending};
use crate::protocol::message::{Answer, Request, SendArm};
use crate::trial::transfers::Transfer;
use stacklab_model::{Family, HostReport, Length, Pacing, TrialSpec};
use std::collections::BTreeMap;
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
    let mut progress = Progress::default();
    for transfer in transfers {
        progress.listen(agents[transfer.to()], transfer)?;
    }
    if let Some(listening) = progress.all_listen() {
        for (number, pending) in start_all(&mut agents, transfers, listening)? {
            progress.sent(number, finish(agents[transfers[number].from], pending, "send", limit))?;
        }
    }
    for (number, transfer) in transfers.iter().enumerate() {
        progress.collect(agents[transfer.to()], number, limit)?;
    }
    progress.host_reports()
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
    let mut progress = Progress::default();
    for arm in arms {
        progress.listen(agents[to], arm)?;
    }
    if let Some(listening) = progress.all_listen() {
        let sends = arms.iter().zip(listening).map(|(arm, (_, address))| send_arm(arm, *address));
        let request = Request::SendInTurns { arms: sends.collect(), seed };
        let pending = agents[from].start(request, "send in turns")?;
        match agents[from].finish(pending, limit) {
            Ok(Answer::ArmsDone(reports)) if reports.len() == arms.len() => {
                reports
                    .into_iter()
                    .enumerate()
                    .try_for_each(|(number, report)| progress.sent(number, Ok(report)))?;
            }
            Ok(_) => return Err(agents[from].confused("send in turns")),
            Err(error) => progress.failed(error)?,
        }
    }
    for number in 0..arms.len() {
        progress.collect(agents[to], number, limit)?;
    }
    progress.host_reports()
}

/// What has come of the transfers of a trial. An agent's failure ends the trial, but only after all others have ended; when an
/// agent is gone or silent, every step returns that error, the campaign ends, and the agents with it.
#[derive(Default)]
pub(super) struct Progress {
    /// Number and address of each receiver that listens.
    listening: Vec<(u64, SocketAddr)>,
    sent: BTreeMap<usize, HostReport>,
    host_reports: Vec<[HostReport; 2]>,
    first_failure: Option<AgentError>,
}

impl Progress {
    /// Lets the next transfer's receiver listen, if nothing has failed.
    pub(super) fn listen(&mut self, agent: &mut AgentClient, transfer: &Transfer) -> Result<(), AgentError> {
        if self.first_failure.is_none() {
            match listen(agent, transfer) {
                Ok(place) => self.listening.push(place),
                Err(error) => self.failed(error)?,
            }
        }
        Ok(())
    }

    /// Number and address of every receiver, if all of them listen.
    pub(super) fn all_listen(&self) -> Option<&[(u64, SocketAddr)]> {
        self.first_failure.is_none().then_some(&self.listening)
    }

    /// Keeps what came of a sender.
    pub(super) fn sent(
        &mut self,
        number: usize,
        report: Result<HostReport, AgentError>,
    ) -> Result<(), AgentError> {
        match report {
            Ok(report) => drop(self.sent.insert(number, report)),
            Err(error) => self.failed(error)?,
        }
        Ok(())
    }

    /// Collects the report of a transfer's receiver, also when its sender failed: no receiver is left waiting.
    pub(super) fn collect(
        &mut self,
        agent: &mut AgentClient,
        number: usize,
        limit: Duration,
    ) -> Result<(), AgentError> {
        let Some((id, _)) = self.listening.get(number) else { return Ok(()) };
        let pending = agent.start(Request::Collect { listen: *id }, "collect")?;
        match finish(agent, pending, "collect", limit) {
            Ok(received) => self.host_reports.extend(self.sent.remove(&number).map(|sent| [sent, received])),
            Err(error) => self.failed(error)?,
        }
        Ok(())
    }

    /// Keeps the first error that only invalidates the run; returns one that ends the campaign.
    fn failed(&mut self, error: AgentError) -> Result<(), AgentError> {
        if !matches!(error, AgentError::Failed { .. }) {
            return Err(error);
        }
        self.first_failure.get_or_insert(error);
        Ok(())
    }

    /// Both reports of each transfer, sender first, or the first failure.
    pub(super) fn host_reports(self) -> Result<Vec<[HostReport; 2]>, AgentError> {
        self.first_failure.map_or(Ok(self.host_reports), Err)
    }
}

pub(super) fn send_arm(transfer: &Transfer, listening: SocketAddr) -> SendArm {
    let Transfer { path, spec, .. } = transfer;
    let spec = TrialSpec { family: Family::of(path.sender.ip()), ..spec.clone() };
    let to = SocketAddr::new(path.destination(), listening.port());
    SendArm { spec: Box::new(spec), from: path.sender.clone(), to }
}

fn listen(agent: &mut AgentClient, transfer: &Transfer) -> Result<(u64, SocketAddr), AgentError> {
    // Behind a translator the receiver has the other family.
    let spec = TrialSpec { family: Family::of(transfer.path.receiver.ip()), ..transfer.spec.clone() };
    let request = Request::Listen { spec: Box::new(spec), address: transfer.path.receiver.clone() };
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
