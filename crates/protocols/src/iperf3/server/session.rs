//! One test of a client.

use crate::iperf3::control::ControlConnection;
use crate::iperf3::server::registry::Registry;
use crate::iperf3::server::stream_socket;
use crate::iperf3::streams::{RunningStreams, format, results_of, stream_spec, ways};
use crate::iperf3::{
    Cookie, MAX_PARAMETER_BYTES, MAX_RESULT_BYTES, Parameters, Refusal, Results, State, StreamResult,
};
use socket2::Socket;
use stacklab_model::{Family, Length, ScopedAddr, Transport, printable_text, say};
use stacklab_traffic::foreign::{Stream, Way, now_ns};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const STEP_LIMIT: Duration = Duration::from_secs(10);
/// How much longer than it said a test may take: clients end it.
const GRACE: Duration = Duration::from_secs(10);

/// Serves a test, and says on standard error why it was not served to its end.
pub(super) fn serve(stream: TcpStream, cookie: Cookie, registry: &Registry, interrupted: &AtomicBool) {
    let client = stream.peer_addr().map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
    let served = ControlConnection::over(stream)
        .and_then(|control| ServerSession { control, cookie, registry, interrupted }.serve());
    registry.served.fetch_add(1, Ordering::Relaxed);
    if let Err(reason) = served {
        let reason = printable_text(&reason.to_string());
        say!("stacklab: iperf3: the test of {client}: {reason}");
    }
}

struct ServerSession<'a> {
    control: ControlConnection,
    cookie: Cookie,
    registry: &'a Registry,
    interrupted: &'a AtomicBool,
}

impl ServerSession<'_> {
    fn serve(mut self) -> io::Result<()> {
        self.control.tell(State::ParamExchange)?;
        let text = self.control.text(MAX_PARAMETER_BYTES, Instant::now() + STEP_LIMIT)?;
        let parameters = match Parameters::parse(&text)
            .and_then(|parameters| self.registry.limits.check(&parameters).map(|()| parameters))
        {
            Ok(parameters) => parameters,
            Err((refusal, reason)) => return self.refuse(refusal, &reason),
        };
        let ways: Vec<Way> = ways(&parameters).into_iter().map(turn_round).collect();
        let client = ScopedAddr::from(self.control.ends()?[1]);
        let Some(_places) = self.registry.streams(&client, ways.len()) else {
            return self.refuse(Refusal::Streams, "there is no room for further streams of this client");
        };
        let sockets = match parameters.transport {
            Transport::Tcp => self.connections(ways.len())?,
            Transport::Udp => self.greetings(ways.len())?,
        };
        let [own, _] = self.control.ends()?;
        let mut streams = Vec::new();
        for (socket, way) in sockets.into_iter().zip(ways) {
            let mut parameters = parameters.clone();
            if way == Way::Send && parameters.bandwidth == 0 {
                parameters.bandwidth = self.registry.limits.share(&parameters);
            }
            let spec = stream_spec(&parameters, Family::of(own.ip()), length(&parameters));
            match Stream::from_accepted_socket(&spec, format(&parameters), socket) {
                Ok(stream) => streams.push((Arc::new(stream), way)),
                Err(error) => return self.refuse(Refusal::Stream, &error.to_string()),
            }
        }
        self.control.tell(State::TestStart)?;
        self.control.tell(State::TestRunning)?;
        let omit_ns = u64::from(parameters.omit_s) * 1_000_000_000;
        let traffic = RunningStreams::start(streams, omit_ns)?;
        self.watch(&parameters)?;
        let end_ns = now_ns();
        let begin_ns = traffic.begin_ns();
        let streams = traffic.streams.clone();
        let counted = traffic.finish();
        let results = results_of(&streams, &counted, parameters.block_bytes, begin_ns, end_ns);
        let first = streams.first().filter(|_| parameters.transport == Transport::Tcp);
        let congestion_used = first.and_then(|(stream, _)| stream.endpoint().ok()?.congestion_control);
        // A client that receives reads whole blocks, and waits for the rest of one as long as the connection is open.
        streams.iter().for_each(|(stream, _)| stream.end());
        let server_output = parameters.get_server_output.then(|| output(&streams, &results));
        self.exchange(&Results { congestion_used, server_output, streams: results })
    }

    fn refuse(&mut self, refusal: Refusal, reason: &str) -> io::Result<()> {
        self.control.send(&refusal.bytes())?;
        Err(io::Error::other(format!("refused: {reason}")))
    }

    /// The connections of a test's streams, in the order in which the client opened them.
    fn connections(&mut self, count: usize) -> io::Result<Vec<Socket>> {
        let [own, peer] = self.control.ends()?;
        let _admitted = self.registry.admit_streams(&peer.into(), count);
        let Some(awaited) = self.registry.await_streams(self.cookie) else {
            return Err(io::Error::other("another test has this cookie"));
        };
        self.control.tell(State::CreateStreams)?;
        let deadline = Instant::now() + STEP_LIMIT;
        let mut found = Vec::new();
        while found.len() < count {
            if let Some(arrived) = awaited.next() {
                let from = arrived.stream.peer_addr()?;
                if from.ip() == peer.ip() && arrived.stream.local_addr()?.ip() == own.ip() {
                    found.push(arrived);
                }
            }
            self.go_on(deadline)?;
        }
        found.sort_by_key(|arrived| arrived.order);
        Ok(found.into_iter().map(|arrived| arrived.stream.into()).collect())
    }

    /// The sockets of a test's streams over UDP, each connected to where the client greeted from.
    fn greetings(&mut self, count: usize) -> io::Result<Vec<Socket>> {
        let [own, peer] = self.control.ends()?;
        let start = Instant::now();
        let awaited = loop {
            // Another client on the same host opens its streams.
            match self.registry.await_greetings(peer.ip()) {
                Some(awaited) => break awaited,
                None => thread::sleep(Duration::from_millis(5)),
            }
            self.go_on(start + 2 * STEP_LIMIT)?;
        };
        self.control.tell(State::CreateStreams)?;
        let deadline = Instant::now() + STEP_LIMIT;
        let mut found: Vec<(SocketAddr, Socket)> = Vec::new();
        while found.len() < count {
            if let Some(greeted) = awaited.next()
                && found.iter().all(|(from, _)| *from != greeted.from)
            {
                let socket = stream_socket(own, greeted.from, self.registry)?;
                socket.send(&greeted.answer)?;
                found.push((greeted.from, socket));
            }
            self.go_on(deadline)?;
        }
        Ok(found.into_iter().map(|(_, socket)| socket).collect())
    }

    /// Fails when the client has gone, the deadline has passed, or this program is to end.
    fn go_on(&mut self, deadline: Instant) -> io::Result<()> {
        if Instant::now() > deadline {
            return Err(io::Error::new(ErrorKind::TimedOut, "it did not open its streams"));
        }
        if self.interrupted.load(Ordering::Relaxed) {
            let _ = self.control.tell(State::ServerTerminate);
            return Err(ErrorKind::Interrupted.into());
        }
        if self.control.is_closed() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn watch(&mut self, parameters: &Parameters) -> io::Result<()> {
        let deadline = Instant::now() + self.registry.limits.lasts(parameters) + GRACE;
        loop {
            match self.control.look()? {
                Some(State::TestEnd) => return Ok(()),
                Some(State::ClientTerminate) => return Err(io::Error::other("the client ended it")),
                Some(state) => return Err(io::Error::other(format!("it sent {state:?} during the test"))),
                None => {}
            }
            let is_late = Instant::now() > deadline;
            if is_late || self.interrupted.load(Ordering::Relaxed) {
                let _ = self.control.tell(State::ServerTerminate);
                let reason = if is_late { "it took longer than it may" } else { "this server ended" };
                return Err(io::Error::other(reason));
            }
        }
    }

    fn exchange(&mut self, own: &Results) -> io::Result<()> {
        self.control.tell(State::ExchangeResults)?;
        let by = Instant::now() + STEP_LIMIT;
        let theirs = self.control.text(MAX_RESULT_BYTES, by)?;
        Results::parse(&theirs).map_err(io::Error::other)?;
        self.control.send_text(&own.to_json())?;
        self.control.tell(State::DisplayResults)?;
        // What the client says now changes nothing: it may also close.
        let _ = self.control.state(by);
        Ok(())
    }
}

/// Those that the client sends are received here.
fn turn_round(way: Way) -> Way {
    match way {
        Way::Send => Way::Receive,
        Way::Receive => Way::Send,
    }
}

/// How much a stream of the server's sends: what the client counts to, or until the client ends the test. Datagrams may
/// be lost, and the client would count to the end of time.
fn length(parameters: &Parameters) -> Length {
    let Parameters { transport, bytes, blocks, block_bytes, parallel, .. } = *parameters;
    let blocks = if blocks > 0 { blocks } else { bytes.div_ceil(block_bytes.into()) };
    match transport {
        Transport::Tcp if blocks > 0 => Length::Packets(blocks.div_ceil(parallel.into())),
        _ => Length::Time(u64::MAX / 4),
    }
}

/// What `--get-server-output` shows.
fn output(streams: &[(Arc<Stream>, Way)], results: &[StreamResult]) -> String {
    let mut text = format!("stacklab {}\n", env!("CARGO_PKG_VERSION"));
    for ((_, way), StreamResult { id, bytes, seconds, packets, errors, .. }) in streams.iter().zip(results) {
        let did = if *way == Way::Send { "sent" } else { "received" };
        text += &format!("[{id:3}] {did} {bytes} bytes in {seconds:.3} s");
        if *packets > 0 {
            text += &format!(", datagrams up to number {packets}, {errors} of them lost");
        }
        text += "\n";
    }
    text
}
