//! A client of iperf3's server, of any version from 3.9 on.

use crate::iperf3::control::ControlConnection;
use crate::iperf3::streams::{RunningStreams, format, results_of, stream_spec, ways};
use crate::iperf3::{
    Cookie, GREETING_BYTES, MAX_RESULT_BYTES, Parameters, Refusal, Results, State, greeting, is_answer,
};
use stacklab_model::{Family, HostReport, Io, Length, ScopedAddr, Transport};
use stacklab_traffic::EngineError;
use stacklab_traffic::foreign::{Counted, OwnHost, SentCounts, Stream, Way, now_ns};
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::waiting::WaitNotice;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const STEP_LIMIT: Duration = Duration::from_secs(10);
/// How long the server may take to answer a UDP stream's greeting: one that was lost is not repeated, for the server
/// would take it for data.
const GREETING_LIMIT: Duration = Duration::from_secs(3);
/// Time for the server to read what has arrived before the end of the test: it counts what it has read by then.
const READ_PAUSE: Duration = Duration::from_millis(50);
/// How often a test is begun: between two tests, the server closes its listening socket with all connections that wait
/// there.
const MAX_BEGINNINGS: u32 = 5;
const BEGINNING_PAUSE: Duration = Duration::from_millis(100);
/// How long nothing arrives of a count of messages before the rest is taken for lost.
const SILENCE: Duration = Duration::from_millis(500);
/// How much longer than asked a test of a count of messages may take.
const MAX_DURATION: Duration = Duration::from_secs(86_400);

/// A test to run.
pub struct Test<'a> {
    /// Own address.
    pub from: ScopedAddr,
    /// The server.
    pub to: SocketAddr,
    /// The parameters for the server.
    pub parameters: Parameters,
    /// The measured part; messages are those of all streams.
    pub length: Length,
    /// How datagrams get into the kernel.
    pub io: Io,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// Whether an interrupt ends the measured part early instead of giving the test up.
    pub keeps_figures: bool,
}

impl Test<'_> {
    /// The error of a step with the server.
    fn describe_failure(&self, attempted: &'static str) -> impl FnOnce(io::Error) -> ClientError {
        let at = self.to.to_string();
        move |reason| ClientError::Io { attempted, at, reason }
    }
}

/// A cookie of random bytes, as iperf3 writes them in base 32.
fn cookie_of(random: [u8; 36]) -> Cookie {
    let mut cookie = [0; 37];
    for (letter, random) in cookie.iter_mut().zip(random) {
        *letter = b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(random) % 32];
    }
    cookie
}

/// What came of a test.
#[derive(Debug)]
pub struct ClientRun {
    /// This host, for each direction that the test had: as sender, as receiver.
    pub(super) own: Vec<HostReport>,
    /// What each stream counted, in the order of their numbers.
    pub(super) counted: Vec<(Way, Counted)>,
    /// The server's word.
    pub(super) peer: Results,
    /// From the begin of the measured part until all was sent and, of TCP, acknowledged, nanoseconds.
    pub window_ns: u64,
    /// From then until the server was asked for what it counted, nanoseconds.
    pub(super) pause_ns: u64,
    pub(super) started_unix_ns: u64,
    /// Duration of everything, nanoseconds.
    pub(super) wall_ns: u64,
}

/// Why a test has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server has another client.
    #[error("the iperf3 server at {0} is busy with another client: try again later")]
    Busy(String),
    /// The server does not want it.
    #[error("the iperf3 server at {0} refused: {1}")]
    Refused(String, String),
    /// The server does not speak iperf3, or not any more.
    #[error(
        "could not {attempted} with {at}: {reason}; see whether `iperf3 -s` runs there, of version 3.9 or newer"
    )]
    Io {
        /// The step.
        attempted: &'static str,
        /// The server.
        at: String,
        /// The reason.
        reason: io::Error,
    },
    /// A socket of this host failed.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// A connection to a server, over which a test may begin.
pub struct OpenControl(ControlConnection);

impl OpenControl {
    /// Connects from an own address.
    pub fn connect(from: &ScopedAddr, to: SocketAddr) -> io::Result<Self> {
        Ok(OpenControl(ControlConnection::connect(from, to)?))
    }
}

/// Runs a test, over the connection to its server that is open, if there is one.
pub fn run(test: &Test<'_>, open: Option<OpenControl>) -> Result<ClientRun, ClientError> {
    let started_unix_ns = now_unix_ns();
    let start = Instant::now();
    let mut session = ClientSession::open(test, open)?;
    let streams = session.open_streams()?;
    let mut outcome = session.traffic(streams)?;
    (outcome.started_unix_ns, outcome.wall_ns) = (started_unix_ns, start.elapsed().as_nanos() as u64);
    Ok(outcome)
}

/// The streams of a test, opened on both ends. Those from the server are received from already.
struct OpenStreams {
    outgoing: Vec<(Arc<Stream>, Way)>,
    incoming: RunningStreams,
}

struct ClientSession<'a> {
    test: &'a Test<'a>,
    control: ControlConnection,
    cookie: Cookie,
    own_host: [OwnHost; 2],
}

impl<'a> ClientSession<'a> {
    fn open(test: &'a Test<'a>, mut open: Option<OpenControl>) -> Result<Self, ClientError> {
        let mut beginnings = 1;
        let mut session = loop {
            match Self::begin(test, open.take()) {
                Err(ClientError::Io { reason, .. })
                    if reason.kind() == io::ErrorKind::ConnectionReset && beginnings < MAX_BEGINNINGS =>
                {
                    beginnings += 1;
                    thread::sleep(BEGINNING_PAUSE);
                }
                begun => break begun?,
            }
        };
        session
            .control
            .send_text(&test.parameters.to_json())
            .map_err(test.describe_failure("send the parameters"))?;
        session.expect(State::CreateStreams, "agree on the parameters")?;
        Ok(session)
    }

    /// Connects, and waits until the server asks for the parameters.
    fn begin(test: &'a Test<'a>, open: Option<OpenControl>) -> Result<Self, ClientError> {
        let own_host = [OwnHost::begin(&test.from)?, OwnHost::begin(&test.from)?];
        let control = match open {
            Some(OpenControl(control)) => control,
            None => {
                ControlConnection::connect(&test.from, test.to).map_err(test.describe_failure("connect"))?
            }
        };
        let mut random = [0; 36];
        getrandom::fill(&mut random)
            .map_err(io::Error::other)
            .map_err(test.describe_failure("draw a cookie"))?;
        let mut session = ClientSession { test, control, cookie: cookie_of(random), own_host };
        session.control.send(&session.cookie).map_err(test.describe_failure("begin a test"))?;
        session.expect(State::ParamExchange, "begin a test")?;
        Ok(session)
    }

    /// Opens the streams: those to the server first. Those from the server are received from before it sends.
    fn open_streams(&mut self) -> Result<OpenStreams, ClientError> {
        let Parameters { parallel, omit_s, .. } = self.test.parameters;
        let mut outgoing = Vec::new();
        let mut incoming = Vec::new();
        for (way, place) in ways(&self.test.parameters).into_iter().zip((0..parallel).cycle()) {
            let streams = if way == Way::Send { &mut outgoing } else { &mut incoming };
            streams.push((Arc::new(self.stream(way, place.into())?), way));
        }
        let incoming = RunningStreams::receive_early(incoming, omit_s > 0)
            .map_err(self.test.describe_failure("begin the traffic"))?;
        self.expect(State::TestStart, "open the streams")?;
        self.expect(State::TestRunning, "begin the traffic")?;
        Ok(OpenStreams { outgoing, incoming })
    }

    fn stream(&self, way: Way, place: u64) -> Result<Stream, ClientError> {
        let Test { parameters, from, to, length, .. } = self.test;
        let streams = u64::from(parameters.parallel);
        let length = match *length {
            Length::Packets(all) if way == Way::Send => {
                let until = count_before(place + 1, all, streams);
                Length::Packets(until - count_before(place, all, streams))
            }
            length => length,
        };
        let mut spec = stream_spec(parameters, Family::of(to.ip()), length);
        if parameters.transport == Transport::Udp {
            spec.io = self.test.io;
        }
        let stream = Stream::connect(&spec, format(parameters), from, *to)?;
        match parameters.transport {
            Transport::Tcp => {
                stream.send_first(&self.cookie).map_err(self.test.describe_failure("open a stream"))?;
            }
            Transport::Udp => greet(&stream).map_err(self.test.describe_failure("open a stream"))?,
        }
        Ok(stream)
    }

    fn traffic(mut self, streams: OpenStreams) -> Result<ClientRun, ClientError> {
        let OpenStreams { outgoing, incoming } = streams;
        let test = self.test;
        let omit_ns = u64::from(test.parameters.omit_s) * 1_000_000_000;
        let block = test.parameters.block_bytes;
        let outgoing =
            RunningStreams::start(outgoing, omit_ns).map_err(test.describe_failure("begin the traffic"))?;
        let begin_ns = outgoing.begin_ns();
        if omit_ns > 0 {
            incoming.measure_from(begin_ns);
        }
        self.watch(&outgoing, &incoming, begin_ns)?;
        let sending = outgoing.streams.clone();
        let receiving = incoming.streams.clone();
        let mut counted: Vec<Counted> = outgoing.finish();
        for ((stream, _), counted) in sending.iter().zip(&counted) {
            // Of a stream that has failed nothing leaves any more.
            if matches!(counted, Counted::Sent(SentCounts { failed: None, .. })) {
                stream.drain().map_err(test.describe_failure("empty a stream"))?;
            }
        }
        let mut end_ns = now_ns();
        if test.parameters.transport == Transport::Udp {
            let sent = counted.iter().filter_map(|counted| match counted {
                Counted::Sent(counts) if counts.last_ns > 0 => Some(counts.last_ns),
                _ => None,
            });
            end_ns = sent.max().unwrap_or(end_ns);
        }
        let window_ns = end_ns.saturating_sub(begin_ns);
        self.own_host.iter_mut().for_each(OwnHost::close);
        if !sending.is_empty() {
            thread::sleep(READ_PAUSE);
        }
        self.control.tell(State::TestEnd).map_err(test.describe_failure("end the test"))?;
        let pause_ns = now_ns().saturating_sub(end_ns);
        // What the server sent until now is taken.
        self.expect(State::ExchangeResults, "end the test")?;
        counted.extend(incoming.finish());
        let all: Vec<(Arc<Stream>, Way)> = sending.into_iter().chain(receiving).collect();
        let streams = results_of(&all, &counted, block, begin_ns, end_ns);
        let results = Results { streams, ..Results::default() };
        let mut own = Vec::new();
        let [as_sender, as_receiver] = self.own_host;
        for (host, way) in [(as_sender, Way::Send), (as_receiver, Way::Receive)] {
            if all.iter().any(|(_, own)| *own == way) {
                let mut report = host.report(&all, &counted, way, block)?;
                if report.received.first_ns > 0 && matches!(test.length, Length::Time(_)) {
                    // The time is that of the test, though nothing arrived at its beginning or its end.
                    let received = &mut report.received;
                    received.first_ns = received.first_ns.min(begin_ns);
                    received.last_ns = received.last_ns.max(end_ns);
                }
                own.push(report);
            }
        }
        let peer = exchange(test, &mut self.control, &results)?;
        let counted = all.iter().map(|(_, way)| *way).zip(counted).collect();
        Ok(ClientRun { own, counted, peer, window_ns, pause_ns, started_unix_ns: 0, wall_ns: 0 })
    }

    /// Waits for the end of the measured part.
    fn watch(
        &mut self,
        outgoing: &RunningStreams,
        incoming: &RunningStreams,
        begin_ns: u64,
    ) -> Result<(), ClientError> {
        let test = self.test;
        let is_forward = !test.parameters.reverse;
        let mut is_open = false;
        let mut grown = (0, Instant::now());
        let start = Instant::now();
        loop {
            let now = now_ns();
            if !is_open && now >= begin_ns {
                self.own_host.iter_mut().for_each(OwnHost::open);
                is_open = true;
            }
            let is_over = match test.length {
                Length::Time(ns) => now >= begin_ns + ns,
                Length::Packets(_) if is_forward => outgoing.is_over(Way::Send),
                Length::Packets(packets) => {
                    let arrived = incoming.bytes(Way::Receive);
                    if arrived > grown.0 {
                        grown = (arrived, Instant::now());
                    }
                    // Of what the server sends, some may be lost.
                    let is_silent = arrived > 0 && grown.1.elapsed() > SILENCE;
                    is_silent || arrived >= packets.saturating_mul(test.parameters.block_bytes.into())
                }
            };
            let is_dead = (is_forward && outgoing.is_over(Way::Send))
                || (!incoming.streams.is_empty() && incoming.is_over(Way::Receive));
            let ends_early = test.keeps_figures && is_open && test.interrupted.load(Ordering::Relaxed);
            if is_over || is_dead || ends_early {
                return Ok(());
            }
            if test.interrupted.load(Ordering::Relaxed) || start.elapsed() > MAX_DURATION {
                let _ = self.control.tell(State::ClientTerminate);
                return Err(ClientError::Interrupted);
            }
            match self.control.look().map_err(test.describe_failure("continue"))? {
                None => {}
                Some(State::ServerTerminate) => {
                    return Err(ClientError::Refused(test.to.to_string(), "it ended the test".to_owned()));
                }
                Some(state) => return Err(self.explain_unexpected_state(state)),
            }
        }
    }

    fn expect(&mut self, expected: State, attempted: &'static str) -> Result<(), ClientError> {
        let awaited = format!("the iperf3 server on {} (to {attempted})", self.test.to);
        let _notice = WaitNotice::within(&awaited, STEP_LIMIT);
        match self
            .control
            .state(Instant::now() + STEP_LIMIT)
            .map_err(self.test.describe_failure(attempted))?
        {
            state if state == expected => Ok(()),
            state => Err(self.explain_unexpected_state(state)),
        }
    }

    fn explain_unexpected_state(&mut self, state: State) -> ClientError {
        let at = self.test.to.to_string();
        match state {
            State::AccessDenied => ClientError::Busy(at),
            State::ServerError => {
                let mut reason = [0; 8];
                let given = self.control.fill(&mut reason, Instant::now() + STEP_LIMIT).is_ok();
                let reason = if given { Refusal::explain(reason) } else { "no reason given".to_owned() };
                ClientError::Refused(at, reason)
            }
            state => ClientError::Refused(at, format!("it sent {state:?} out of sequence")),
        }
    }
}

/// How many of a test's messages the streams before a place send.
fn count_before(place: u64, messages: u64, streams: u64) -> u64 {
    (u128::from(messages) * u128::from(place) / u128::from(streams)) as u64
}

fn greet(stream: &Stream) -> io::Result<()> {
    stream.send_first(&greeting())?;
    let deadline = Instant::now() + GREETING_LIMIT;
    let mut room = [0; GREETING_BYTES + 1];
    while Instant::now() < deadline {
        match stream.receive_first(&mut room) {
            Ok(count) if is_answer(&room[..count]) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    let reason = "no answer to the greeting over UDP, of which either may be lost";
    Err(io::Error::new(ErrorKind::TimedOut, reason))
}

/// Tells the server what was counted here, and takes its word.
fn exchange(test: &Test<'_>, control: &mut ControlConnection, own: &Results) -> Result<Results, ClientError> {
    const ATTEMPTED: &str = "exchange results";
    let by = Instant::now() + STEP_LIMIT;
    control.send_text(&own.to_json()).map_err(test.describe_failure(ATTEMPTED))?;
    let text = control.text(MAX_RESULT_BYTES, by).map_err(test.describe_failure(ATTEMPTED))?;
    let results =
        Results::parse(&text).map_err(io::Error::other).map_err(test.describe_failure(ATTEMPTED))?;
    // What follows changes no figure.
    if control.state(by).is_ok() {
        let _ = control.tell(State::IperfDone);
    }
    Ok(results)
}

#[cfg(test)]
mod tests;
