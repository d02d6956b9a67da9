//! The sockets at both ends of an arm's connections, and what they send each other.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::Prepared;
use crate::trial::search::slice::MAX_REALTIME_NS;
use stacklab_model::{Length, PortGrid, ScopedAddr, SearchSpec, SenderPriority, Tables};
use stacklab_testbed::{DeletedConnections, Routed, TestbedError, TrackedConnections};
use stacklab_traffic::protocol::{
    AgentClient, AgentError, Answer, AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen, Request,
    SentToPorts, TakenFromPorts,
};
use std::net::IpAddr;
use std::time::Duration;

const ATTEMPTED: &str = "make connections";
/// Longer than any slice takes that a sender is held up in, with its answers.
const LIMIT: Duration = Duration::from_secs(60);
/// The most times that connections are made until all are there.
const MAX_PASSES: u32 = 5;
/// Longer than that, making all connections once has no end within the limit.
const MAX_PASS_SECONDS: f64 = 15.0;
/// The share of the connections that are answered at least.
const MIN_ANSWERED: f64 = 0.995;

/// An arm's sockets. Each pair of one of the sender's and one of the receiver's is a connection.
pub(in crate::trial::search) struct ConnectionEnds {
    /// Ids of the requests that opened them, the sender's first.
    opened: [u64; 2],
    grid: PortGrid,
    /// The receiver as the sender sees it.
    to: IpAddr,
    ports: Vec<u16>,
    /// Further connections of each family in the near router's table.
    further: u32,
    /// Messages per second of new connections that the path carries with ease.
    pub(super) easy_rate: f64,
    /// Whether all of them are in the table, as far as is known.
    pub(super) is_established: bool,
}

/// What was sent, and what of it has arrived.
pub(super) struct Passed {
    pub sent: SentToPorts,
    pub taken: TakenFromPorts,
}

/// How messages are sent.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub per_second: f64,
    pub length: Length,
    pub token: u32,
}

/// What an agent answered, or why it failed. Other errors end the campaign.
type Answered<T> = Result<Result<T, String>, CampaignError>;

impl ConnectionEnds {
    /// Opens the sockets on both hosts. `arms` is the number of those whose connections the same routers have.
    pub(super) fn open(
        rig: &mut Rig,
        arm: &Prepared<'_>,
        search: &SearchSpec,
        arms: usize,
    ) -> Answered<Self> {
        let grid = PortGrid::arrange(search.connections());
        let further = Tables::of(&arm.trial.cell).tracking.connections();
        let own = u64::from(grid.sources) * u64::from(grid.ports);
        find_routers(rig)?.prepare_connections(arms as u64 * own + 2 * u64::from(further))?;
        let to = arm.path.nat.as_ref().map_or(arm.path.receiver.ip(), |nat| nat.destination);
        let message_bytes = arm.spec.message_bytes;
        let addresses = [&arm.path.sender, &arm.path.receiver];
        let counts = [[grid.sources, grid.ports], [grid.ports, grid.sources]];
        let mut opened = [0, 0];
        let mut ports = Vec::new();
        for (place, [count, messages]) in counts.into_iter().enumerate() {
            let address: ScopedAddr = addresses[place].clone();
            let asked = Request::OpenPorts(PortsToOpen { address, count, messages, message_bytes });
            let agent = &mut rig.ends.agents()[place];
            match ask(agent, asked)? {
                Ok((id, Answer::PortsOpen { ports: own })) if own.len() == count as usize => {
                    opened[place] = id;
                    ports = own;
                }
                Ok(_) => return Err(agent.describe_wrong_answer(ATTEMPTED).into()),
                Err(reason) => {
                    close_ports(rig, &opened[..place])?;
                    return Ok(Err(reason));
                }
            }
        }
        let is_established = false;
        let easy_rate = 0.0;
        Ok(Ok(ConnectionEnds { opened, grid, to, ports, further, easy_rate, is_established }))
    }

    /// All of its connections.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.grid.sources) * u64::from(self.grid.ports)
    }

    pub(super) fn close(&self, rig: &mut Rig) -> Result<(), CampaignError> {
        close_ports(rig, &self.opened)
    }

    /// Why the path is too slow for all connections to be made; `None` if it is not.
    pub(super) fn describe_slowness(&self) -> Option<String> {
        let seconds = self.count() as f64 / self.easy_rate;
        (seconds > MAX_PASS_SECONDS).then(|| {
            format!(
                "{} connections take {seconds:.0} s to make on this path: set probe.search.connections to fewer",
                self.count()
            )
        })
    }

    /// Deletes the connections of the routers.
    pub(super) fn delete(&self, rig: &Rig) -> Result<DeletedConnections, CampaignError> {
        Ok(find_routers(rig)?.delete_connections(self.further)?)
    }

    /// What is in the routers' tables beside further connections.
    pub(super) fn count_entries(&self, rig: &Rig) -> Result<TrackedConnections, CampaignError> {
        let tracked = find_routers(rig)?.count_connections()?;
        let entries = tracked.entries.saturating_sub(2 * u64::from(self.further));
        Ok(TrackedConnections { entries, ..tracked })
    }

    /// Sends messages, and reads them when the path is empty.
    pub(super) fn pass(&self, rig: &mut Rig, priority: SenderPriority, stream: Stream) -> Answered<Passed> {
        let Stream { per_second, length, token } = stream;
        let is_long = matches!(length, Length::Time(ns) if ns > MAX_REALTIME_NS);
        let asked = MessagesToPorts {
            opened: self.opened[0],
            token,
            to: self.to,
            ports: self.ports.clone(),
            per_second,
            length,
            priority: if is_long { SenderPriority::Normal } else { priority },
        };
        let [sender, receiver] = rig.ends.agents();
        let sent = match ask_to_send(sender, Request::SendToPorts(asked))? {
            Ok(sent) => sent,
            Err(reason) => return Ok(Err(reason)),
        };
        let taken = self.take(receiver, 1, self.grid.sources, stream, sent)?;
        Ok(taken.map(|taken| Passed { sent, taken }))
    }

    /// Answers each message that has arrived, and reads the answers.
    pub(super) fn answer(&self, rig: &mut Rig, per_second: f64, token: u32) -> Answered<TakenFromPorts> {
        let [sender, receiver] = rig.ends.agents();
        let asked = AnswersToSend { opened: self.opened[1], token, per_second };
        let sent = match ask_to_send(receiver, Request::AnswerFromPorts(asked))? {
            Ok(sent) => sent,
            Err(reason) => return Ok(Err(reason)),
        };
        let stream = Stream { per_second, length: Length::Packets(sent.messages), token };
        // Messages are numbered by what the sender sent.
        self.take(sender, 0, 1, stream, sent)
    }

    fn take(
        &self,
        agent: &mut AgentClient,
        place: usize,
        stride: u32,
        stream: Stream,
        sent: SentToPorts,
    ) -> Answered<TakenFromPorts> {
        let asked = MessagesToTake {
            opened: self.opened[place],
            token: stream.token,
            sent: sent.messages,
            most: self.count(),
            per_second: stream.per_second,
            sent_until_ns: sent.last_ns,
            stride,
        };
        match ask(agent, Request::TakeFromPorts(asked))? {
            Ok((_, Answer::TakenFromPorts(taken))) => Ok(Ok(taken)),
            Ok(_) => Err(agent.describe_wrong_answer(ATTEMPTED).into()),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Has all connections in the table, answered, if that comes about: until as many entries are made as there are
    /// connections, or all messages have arrived and made none.
    pub(super) fn establish(&mut self, rig: &mut Rig, token: u32) -> Answered<()> {
        let before = self.count_entries(rig)?.entries;
        self.is_established = false;
        for pass in 0..MAX_PASSES {
            let before_pass = self.count_entries(rig)?.entries;
            let stream = self.list_all(token ^ (pass << 24));
            let passed = match self.pass(rig, SenderPriority::Normal, stream)? {
                Ok(passed) => passed,
                Err(reason) => return Ok(Err(reason)),
            };
            let answers = match self.answer(rig, self.easy_rate, stream.token)? {
                Ok(answers) => answers,
                Err(reason) => return Ok(Err(reason)),
            };
            let entries = self.count_entries(rig)?.entries;
            let are_known =
                entries == before_pass && entries >= self.count() && passed.taken.messages == self.count();
            let are_answered = answers.messages as f64 >= MIN_ANSWERED * self.count() as f64;
            if are_answered && (are_known || entries >= before + self.count()) {
                self.is_established = true;
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Has all connections in the table, which is empty before, if that comes about.
    pub(super) fn fill_table(&mut self, rig: &mut Rig, token: u32) -> Answered<()> {
        for pass in 0..MAX_PASSES {
            let stream = self.list_all(token ^ (pass << 24));
            if let Err(reason) = self.pass(rig, SenderPriority::Normal, stream)? {
                return Ok(Err(reason));
            }
            if self.count_entries(rig)?.entries >= self.count() {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// A message of each connection.
    fn list_all(&self, token: u32) -> Stream {
        Stream { per_second: self.easy_rate, length: Length::Packets(self.count()), token }
    }
}

fn close_ports(rig: &mut Rig, opened: &[u64]) -> Result<(), CampaignError> {
    for (opened, agent) in opened.iter().zip(rig.ends.agents()) {
        match ask(agent, Request::ClosePorts { opened: *opened })? {
            Ok((_, Answer::PortsClosed)) | Err(_) => {}
            Ok(_) => return Err(agent.describe_wrong_answer(ATTEMPTED).into()),
        }
    }
    Ok(())
}

fn find_routers(rig: &Rig) -> Result<&Routed, TestbedError> {
    rig.network.find_routers().ok_or_else(|| {
        TestbedError(
            "the connections of routers in a guest cannot be counted: run it without --in-vm".to_owned(),
        )
    })
}

fn ask(agent: &mut AgentClient, request: Request) -> Answered<(u64, Answer)> {
    match agent.ask(request, ATTEMPTED, LIMIT) {
        Ok(answer) => Ok(Ok(answer)),
        Err(AgentError::Failed { host, reason }) => Ok(Err(format!("{host} {reason}"))),
        Err(error) => Err(error.into()),
    }
}

fn ask_to_send(agent: &mut AgentClient, request: Request) -> Answered<SentToPorts> {
    match ask(agent, request)? {
        Ok((_, Answer::SentToPorts(sent))) => Ok(Ok(sent)),
        Ok(_) => Err(agent.describe_wrong_answer(ATTEMPTED).into()),
        Err(reason) => Ok(Err(reason)),
    }
}
