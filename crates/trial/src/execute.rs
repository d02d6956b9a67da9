//! Executes the transfers of a trial on two agents.

use crate::transfers::{Transfer, TransferRole};
use stacklab_model::{Ends, Family, HostReport, Probe, Role, ScopedAddr, TrialSpec};
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::protocol::{AgentClient, Pending};
use stacklab_traffic::protocol::{Answer, Request, SendArm};
use stacklab_traffic::timing::{SLACK, longest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Runs the transfers concurrently and returns both reports of each, sender first.
///
/// # Errors
/// The error of the first agent that failed, after all others have ended; at once when an agent is gone.
pub(crate) fn execute(
    mut agents: [&mut AgentClient; 2],
    transfers: &[Transfer],
) -> Result<Vec<Ends<HostReport>>, AgentError> {
    let mut progress = Progress::new(length(transfers), agents[0].patience());
    let time = progress.time;
    for transfer in transfers {
        progress.listen(&mut agents, transfer)?;
    }
    if let Some(listening) = progress.all_listen() {
        for (number, pending) in start_all(&mut agents, transfers, listening)? {
            progress.sent(number, finish(agents[transfers[number].from], pending, "send", time))?;
        }
    }
    for (number, transfer) in transfers.iter().enumerate() {
        progress.collect(&mut agents, transfer, number)?;
    }
    progress.host_reports()
}

/// Runs the arms of an interleaved trial, one transfer each, all in one direction. Returns both reports of each,
/// sender first.
///
/// # Errors
/// As [`execute`].
pub(crate) fn execute_in_turns(
    mut agents: [&mut AgentClient; 2],
    arms: &[Transfer],
    seed: u64,
) -> Result<Vec<Ends<HostReport>>, AgentError> {
    let from = arms.first().map_or(0, |arm| arm.from);
    let mut progress = Progress::new(length_in_turns(arms), agents[from].patience());
    let time = progress.time;
    for arm in arms {
        progress.listen(&mut agents, arm)?;
    }
    if let Some(listening) = progress.all_listen() {
        let sends = arms.iter().zip(listening).map(|(arm, listening)| send_arm(arm, listening));
        let request = Request::SendInTurns { arms: sends.collect(), seed };
        let pending = agents[from].start(request, "send in turns")?;
        match agents[from].finish(pending, time.left()) {
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
    for (number, arm) in arms.iter().enumerate() {
        progress.collect(&mut agents, arm, number)?;
    }
    progress.host_reports()
}

/// The time of a trial, which all of its steps share: a host that is frozen keeps it waiting once.
#[derive(Clone, Copy)]
pub(super) struct Time {
    began: Instant,
    limit: Duration,
    /// That of the agents.
    patience: u32,
}

impl Time {
    /// For a trial of this length that begins now.
    fn new(length: Duration, patience: u32) -> Self {
        Time { began: Instant::now(), limit: length + SLACK, patience }
    }

    /// What is left of it.
    fn left(self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed() / self.patience)
    }
}

/// State of the transfers of a trial. An agent's failure ends the trial, but only after all others have ended; when an
/// agent is gone or silent, every step returns that error, the campaign ends, and the agents with it.
pub(super) struct Progress {
    /// The time for all of its steps.
    pub(super) time: Time,
    listening: Vec<Listening>,
    /// Whether senders were asked to send, which then wait no longer.
    begun: bool,
    sent: BTreeMap<usize, HostReport>,
    host_reports: Vec<Ends<HostReport>>,
    first_failure: Option<AgentError>,
}

impl Progress {
    /// Of a trial of this length that begins now, on agents of this patience.
    pub(super) fn new(length: Duration, patience: u32) -> Self {
        Progress {
            time: Time::new(length, patience),
            listening: Vec::new(),
            begun: false,
            sent: BTreeMap::new(),
            host_reports: Vec::new(),
            first_failure: None,
        }
    }

    /// Lets the next transfer's receiver listen, or open its flows to the sender, if nothing has failed.
    pub(super) fn listen(
        &mut self,
        agents: &mut [&mut AgentClient; 2],
        transfer: &Transfer,
    ) -> Result<(), AgentError> {
        if self.first_failure.is_none() {
            match listen(agents, transfer, self.time) {
                Ok(place) => self.listening.push(place),
                Err(error) => self.failed(error)?,
            }
        }
        Ok(())
    }

    /// Every receiver, if all of them listen. Their senders are then asked to send.
    pub(super) fn all_listen(&mut self) -> Option<&[Listening]> {
        self.begun = self.first_failure.is_none();
        self.begun.then_some(&self.listening)
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
        agents: &mut [&mut AgentClient; 2],
        transfer: &Transfer,
        number: usize,
    ) -> Result<(), AgentError> {
        let Some(Listening { id, waiting, .. }) = self.listening.get(number) else { return Ok(()) };
        if let Some(waiting) = waiting.filter(|_| !self.begun) {
            end_wait(agents[transfer.from], waiting, self.time)?;
        }
        let agent = &mut *agents[transfer.to()];
        let pending = agent.start(Request::Collect { listen: *id }, "collect")?;
        match finish(agent, pending, "collect", self.time) {
            Ok(receiver) => {
                self.host_reports.extend(self.sent.remove(&number).map(|sender| Ends { sender, receiver }))
            }
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
    pub(super) fn host_reports(self) -> Result<Vec<Ends<HostReport>>, AgentError> {
        self.first_failure.map_or(Ok(self.host_reports), Err)
    }
}

/// A receiver that listens, or has opened its flows.
pub(super) struct Listening {
    /// Id of the request.
    id: u64,
    /// Its address.
    address: SocketAddr,
    /// Id of the request by which its sender waits for its flows.
    waiting: Option<u64>,
}

pub(super) fn send_arm(transfer: &Transfer, listening: &Listening) -> SendArm {
    let Transfer { path, .. } = transfer;
    let to = SocketAddr::new(path.destination(), listening.address.port());
    let waiting = listening.waiting;
    SendArm { spec: sender_spec(transfer), from: path.sender.clone(), to, waiting }
}

fn sender_spec(Transfer { path, spec, .. }: &Transfer) -> Box<TrialSpec> {
    Box::new(TrialSpec { family: Family::of(path.sender.ip()), ..spec.clone() })
}

fn listen(
    agents: &mut [&mut AgentClient; 2],
    transfer: &Transfer,
    time: Time,
) -> Result<Listening, AgentError> {
    let Transfer { path, spec, from, .. } = transfer;
    let mut ask = |agent: usize, request, asked: &str| match agents[agent].ask(request, asked, time.left())? {
        (id, Answer::Listening { address }) => Ok((id, address)),
        _ => Err(agents[agent].confused(asked)),
    };
    // Behind a translator the receiver has the other family.
    let receiver_spec = Box::new(TrialSpec { family: Family::of(path.receiver.ip()), ..spec.clone() });
    // An end that does not open may know itself by another address than the one at which it is reached.
    let mut ask_at =
        |agent: usize, address: &ScopedAddr, request: &dyn Fn(ScopedAddr) -> Request, asked: &str| {
            let translates = path.opener.is_some() && !address.is_link_local();
            match ask(agent, request(address.clone()), asked) {
                Err(first @ AgentError::Failed { .. }) if translates => {
                    let unnamed = Family::of(address.ip()).unspecified().into();
                    ask(agent, request(unnamed), asked).map_err(|_| first)
                }
                answered => answered,
            }
        };
    // Opening connections is what that probe measures.
    if path.opener != Some(Role::Receiver) || spec.probe.probe == Probe::Connect {
        let request = |address| Request::Listen { spec: receiver_spec.clone(), address };
        let (id, address) = ask_at(transfer.to(), &path.receiver, &request, "listen")?;
        return Ok(Listening { id, address, waiting: None });
    }
    let request = |address| Request::Wait { spec: sender_spec(transfer), address };
    let (waiting, sender) = ask_at(*from, &path.sender, &request, "wait for the receiver")?;
    let to = SocketAddr::new(path.source(), sender.port());
    let request = Request::Open { spec: receiver_spec, address: path.receiver.clone(), to };
    match ask(transfer.to(), request, "open the flows") {
        Ok((id, address)) => Ok(Listening { id, address, waiting: Some(waiting) }),
        Err(error) => {
            end_wait(agents[*from], waiting, time)?;
            Err(error)
        }
    }
}

/// Ends the wait of a sender that is not asked to send.
fn end_wait(agent: &mut AgentClient, waiting: u64, time: Time) -> Result<(), AgentError> {
    match agent.ask(Request::Collect { listen: waiting }, "end its wait", time.left()) {
        Ok(_) | Err(AgentError::Failed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Starts every sender, all at once. Returns the pending sends with their transfer numbers.
fn start_all(
    agents: &mut [&mut AgentClient; 2],
    transfers: &[Transfer],
    listening: &[Listening],
) -> Result<Vec<(usize, Pending)>, AgentError> {
    let mut order: Vec<usize> = (0..transfers.len()).collect();
    // Load is the first.
    order.sort_by_key(|number| transfers[*number].role != TransferRole::Load);
    let mut sends = Vec::new();
    for number in order {
        let transfer = &transfers[number];
        let request = Request::Send(send_arm(transfer, &listening[number]));
        sends.push((number, agents[transfer.from].start(request, "send")?));
    }
    agents.iter_mut().try_for_each(|agent| agent.flush("send"))?;
    Ok(sends)
}

pub(super) fn finish(
    agent: &mut AgentClient,
    pending: Pending,
    asked: &str,
    time: Time,
) -> Result<HostReport, AgentError> {
    match agent.finish(pending, time.left())? {
        Answer::Done(side) => Ok(*side),
        _ => Err(agent.confused(asked)),
    }
}

/// How long concurrent transfers take.
fn length(transfers: &[Transfer]) -> Duration {
    transfers.iter().map(|transfer| longest(&transfer.spec)).max().unwrap_or_default()
}

/// How long arms in turns take. Between two slices the path empties, which takes no longer than a slice.
fn length_in_turns(arms: &[Transfer]) -> Duration {
    2 * arms.iter().map(|arm| longest(&arm.spec)).sum::<Duration>()
}

#[cfg(test)]
mod tests;
