//! Executes the transfers of a trial on two agents.

use crate::path::Path;
use crate::slots::{AgentPair, LEAD_NS, SlotLengths, Slots};
use crate::transfer::{Transfer, TransferRole};
use stacklab_model::{Ends, Family, HostReport, Probe, Role, ScopedAddr, TrialSpec};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Pending, Request, SendArm};
use stacklab_traffic::timing::{SLACK, longest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How the senders of a trial share the time.
#[derive(Clone, Copy)]
pub(crate) enum Sending {
    AtOnce,
    /// One agent has them send slices in turn, in orders drawn from a seed.
    InTurns(u64),
    /// Each has its time slots, in orders drawn from a seed.
    InSlots(u64, SlotLengths),
}

/// Runs transfers, all on one pair of agents or each on its own, and returns both reports of each, sender first.
pub(crate) fn execute(
    pairs: &mut [AgentPair<'_>],
    transfers: &[Transfer],
    sending: Sending,
) -> Result<Vec<Ends<HostReport>>, AgentError> {
    let (length, slots) = match sending {
        Sending::AtOnce => (length(transfers), None),
        Sending::InTurns(_) => (length_in_turns(transfers), None),
        Sending::InSlots(seed, lengths) => {
            let slots = Slots::plan(pairs, transfers, seed, lengths)?;
            (slots.length, Some(slots))
        }
    };
    let patience = pairs.iter().map(|pair| pair[0].patience()).max().unwrap_or(1);
    let time = Time::new(length, patience);
    let mut failure = Failure::default();
    let mut listening = Vec::new();
    for (number, transfer) in transfers.iter().enumerate() {
        if failure.0.is_none() {
            listening.extend(failure.keep(listen(of_transfer(pairs, number), transfer, time))?);
        }
    }
    let begins = failure.0.is_none();
    let mut sent = BTreeMap::new();
    if begins {
        let arms = transfers.iter().zip(&listening).map(|(transfer, place)| send_arm(transfer, place));
        let mut arms: Vec<(usize, SendArm)> = arms.enumerate().collect();
        // Load is the first.
        arms.sort_by_key(|(number, _)| transfers[*number].role != TransferRole::Load);
        sent = match sending {
            Sending::InTurns(seed) => {
                let agent = &mut *pairs[0][transfers[0].from];
                let arms = arms.into_iter().map(|(_, arm)| arm).collect();
                send_in_turns(agent, arms, seed, time, &mut failure)?
            }
            _ => send(pairs, transfers, arms, slots, time, &mut failure)?,
        };
    }
    // Receivers report also when their sender failed: none is left waiting.
    let mut host_reports = Vec::new();
    for (number, (transfer, ListeningReceiver { id, waiting, .. })) in
        transfers.iter().zip(listening).enumerate()
    {
        let agents = of_transfer(pairs, number);
        if let Some(waiting) = waiting.filter(|_| !begins) {
            end_wait(agents[transfer.from], waiting, time)?;
        }
        let agent = &mut *agents[transfer.to()];
        let pending = agent.start(Request::Collect { listen: id }, "collect")?;
        let receiver = failure.keep(finish(agent, pending, "collect", time))?;
        host_reports
            .extend(sent.remove(&number).zip(receiver).map(|(sender, receiver)| Ends { sender, receiver }));
    }
    failure.0.map_or(Ok(host_reports), Err)
}

/// Has one agent send all arms in turns. Returns the reports by the number of the transfer.
fn send_in_turns(
    agent: &mut AgentClient,
    arms: Vec<SendArm>,
    seed: u64,
    time: Time,
    failure: &mut Failure,
) -> Result<BTreeMap<usize, HostReport>, AgentError> {
    let count = arms.len();
    let pending = agent.start(Request::SendInTurns { arms, seed }, "send in turns")?;
    match failure.keep(agent.finish(pending, time.remaining_time()))? {
        Some(Answer::ArmsDone(reports)) if reports.len() == count => {
            Ok(reports.into_iter().enumerate().collect())
        }
        Some(_) => Err(agent.describe_wrong_answer("send in turns")),
        None => Ok(BTreeMap::new()),
    }
}

/// Has all senders send, at once or in their slots. Returns the reports by the number of the transfer.
fn send(
    pairs: &mut [AgentPair<'_>],
    transfers: &[Transfer],
    arms: Vec<(usize, SendArm)>,
    slots: Option<Slots>,
    time: Time,
    failure: &mut Failure,
) -> Result<BTreeMap<usize, HostReport>, AgentError> {
    let asked = if slots.is_some() { "send in slots" } else { "send" };
    let starts_ns = now_ns() + LEAD_NS;
    let mut sends = Vec::new();
    for (number, arm) in arms {
        let request = match &slots {
            Some(slots) => Request::SendInSlots { timetable: slots.timetable(number, starts_ns), arm },
            None => Request::Send(arm),
        };
        let agent = &mut *of_transfer(pairs, number)[transfers[number].from];
        sends.push((number, agent.start(request, asked)?));
    }
    pairs.iter_mut().flatten().try_for_each(|agent| agent.flush(asked))?;
    let mut sent = BTreeMap::new();
    for (number, pending) in sends {
        let agent = &mut *of_transfer(pairs, number)[transfers[number].from];
        sent.extend(failure.keep(finish(agent, pending, asked, time))?.map(|report| (number, report)));
    }
    Ok(sent)
}

/// The agents of a transfer: those of all, or its own.
pub(crate) fn of_transfer<'p, 'a>(pairs: &'p mut [AgentPair<'a>], number: usize) -> &'p mut AgentPair<'a> {
    let last = pairs.len() - 1;
    &mut pairs[number.min(last)]
}

/// The time of a trial, which all of its steps share: a host that is frozen keeps it waiting once.
#[derive(Clone, Copy)]
struct Time {
    began: Instant,
    limit: Duration,
    patience: u32,
}

impl Time {
    fn new(length: Duration, patience: u32) -> Self {
        Time { began: Instant::now(), limit: length + SLACK, patience }
    }

    fn remaining_time(self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed() / self.patience)
    }
}

/// The first failure of an agent. It ends the trial, but only after all others have ended; when an agent is gone or
/// silent, every step returns that error, the campaign ends, and the agents with it.
#[derive(Default)]
struct Failure(Option<AgentError>);

impl Failure {
    /// Keeps an error that only invalidates the run; returns one that ends the campaign.
    fn keep<T>(&mut self, result: Result<T, AgentError>) -> Result<Option<T>, AgentError> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error @ AgentError::Failed { .. }) => {
                self.0.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A receiver that listens, or has opened its flows.
struct ListeningReceiver {
    id: u64,
    address: SocketAddr,
    /// Id of the request by which its sender waits for its flows.
    waiting: Option<u64>,
}

fn send_arm(transfer: &Transfer, listening: &ListeningReceiver) -> SendArm {
    let Transfer { path, .. } = transfer;
    let to = SocketAddr::new(path.destination(), listening.address.port());
    let waiting = listening.waiting;
    SendArm { spec: sender_spec(transfer), from: path.sender.clone(), to, waiting }
}

fn sender_spec(Transfer { path, spec, .. }: &Transfer) -> Box<TrialSpec> {
    Box::new(TrialSpec { family: Family::of(path.sender.ip()), ..spec.clone() })
}

fn listen(
    agents: &mut AgentPair<'_>,
    transfer: &Transfer,
    time: Time,
) -> Result<ListeningReceiver, AgentError> {
    let Transfer { path, spec, from, .. } = transfer;
    // Behind a translator the receiver has the other family.
    let receiver_spec = Box::new(TrialSpec { family: Family::of(path.receiver.ip()), ..spec.clone() });
    // Opening connections is what that probe measures.
    if path.opener != Some(Role::Receiver) || spec.probe.probe == Probe::Connect {
        let (id, address) = ask_at(agents[transfer.to()], path, &path.receiver, "listen", time, |address| {
            Request::Listen { spec: receiver_spec.clone(), address }
        })?;
        return Ok(ListeningReceiver { id, address, waiting: None });
    }
    let (waiting, sender) =
        ask_at(agents[*from], path, &path.sender, "wait for the receiver", time, |address| Request::Wait {
            spec: sender_spec(transfer),
            address,
        })?;
    let to = SocketAddr::new(path.source(), sender.port());
    let request = Request::Open { spec: receiver_spec, address: path.receiver.clone(), to };
    match ask(agents[transfer.to()], request, "open the flows", time) {
        Ok((id, address)) => Ok(ListeningReceiver { id, address, waiting: Some(waiting) }),
        Err(error) => {
            end_wait(agents[*from], waiting, time)?;
            Err(error)
        }
    }
}

/// Asks for an end of flows. Returns the id of the request, and the address of the end.
fn ask(
    agent: &mut AgentClient,
    request: Request,
    asked: &str,
    time: Time,
) -> Result<(u64, SocketAddr), AgentError> {
    match agent.ask(request, asked, time.remaining_time())? {
        (id, Answer::Listening { address }) => Ok((id, address)),
        _ => Err(agent.describe_wrong_answer(asked)),
    }
}

/// Asks for an end at an address. One that does not open may know itself by another address than the one at which it is
/// reached.
fn ask_at(
    agent: &mut AgentClient,
    path: &Path,
    address: &ScopedAddr,
    asked: &str,
    time: Time,
    request: impl Fn(ScopedAddr) -> Request,
) -> Result<(u64, SocketAddr), AgentError> {
    let translates = path.opener.is_some() && !address.is_link_local();
    match ask(agent, request(address.clone()), asked, time) {
        Err(first @ AgentError::Failed { .. }) if translates => {
            let unnamed = Family::of(address.ip()).unspecified_address().into();
            ask(agent, request(unnamed), asked, time).map_err(|_| first)
        }
        answered => answered,
    }
}

/// Ends the wait of a sender that is not asked to send.
fn end_wait(agent: &mut AgentClient, waiting: u64, time: Time) -> Result<(), AgentError> {
    match agent.ask(Request::Collect { listen: waiting }, "end its wait", time.remaining_time()) {
        Ok(_) | Err(AgentError::Failed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn finish(
    agent: &mut AgentClient,
    pending: Pending,
    asked: &str,
    time: Time,
) -> Result<HostReport, AgentError> {
    match agent.finish(pending, time.remaining_time())? {
        Answer::Done(side) => Ok(*side),
        _ => Err(agent.describe_wrong_answer(asked)),
    }
}

fn length(transfers: &[Transfer]) -> Duration {
    transfers.iter().map(|transfer| longest(&transfer.spec)).max().unwrap_or_default()
}

/// How long arms in turns take. Between two slices the path empties, which takes no longer than a slice.
fn length_in_turns(arms: &[Transfer]) -> Duration {
    2 * arms.iter().map(|arm| longest(&arm.spec)).sum::<Duration>()
}

#[cfg(test)]
mod tests;
