//! Requirements on an agent, on any system.

use super::{CoordinatorEnd, client, spec};
use stacklab_model::{Family, HostFacts, HostReport, Pacing, Probe, Transport, TrialSpec};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::protocol::{Answer, Numbered, Request, SendArm, VERSIONS};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

fn side(answer: Answer) -> HostReport {
    match answer {
        Answer::Done(side) => *side,
        other => panic!("{other:?}"),
    }
}

fn listen(agent: &mut AgentClient, spec: &TrialSpec) -> (u64, SocketAddr) {
    let request = Request::Listen { spec: Box::new(spec.clone()), address: spec.family.loopback().into() };
    match agent.ask(request, "listen", LIMIT).unwrap() {
        (id, Answer::Listening { address }) => (id, address),
        other => panic!("{other:?}"),
    }
}

/// The facts that the agent reports of its host.
pub(crate) fn facts(agent: &mut AgentClient) -> HostFacts {
    match agent.ask(Request::Facts, "tell its facts", LIMIT).unwrap() {
        (_, Answer::Facts(facts)) => *facts,
        other => panic!("{other:?}"),
    }
}

/// One agent runs two sends and two receives at once, and still answers other requests.
pub(crate) fn does_several_things_at_once(open: impl Fn() -> CoordinatorEnd) {
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            let (mut agent, _hang_up) = client("both", open());
            let pacing = Pacing::Schedule(500.0);
            let specs =
                [800, 600].map(|milliseconds| spec(family, transport, Probe::Stream, pacing, milliseconds));
            let listening = specs.each_ref().map(|spec| listen(&mut agent, spec));
            let start = Instant::now();
            let mut sends = Vec::new();
            for (spec, (_, to)) in specs.iter().zip(listening) {
                let request = Request::Send(SendArm {
                    spec: Box::new(spec.clone()),
                    from: family.loopback().into(),
                    to,
                    waiting: None,
                });
                sends.push(agent.start(request, "send").unwrap());
            }
            agent.hello().unwrap();
            let meanwhile = start.elapsed();
            facts(&mut agent);
            // Finished in the opposite order to the one in which they end.
            let sent: Vec<HostReport> =
                sends.into_iter().map(|send| side(agent.finish(send, LIMIT).unwrap())).collect();
            assert!(meanwhile < Duration::from_millis(600), "it answered after {meanwhile:?}");
            let [first, second] = [&sent[0].sent, &sent[1].sent];
            let together = first.first_ns < second.last_ns && second.first_ns < first.last_ns;
            assert!(together, "one was sent after the other: {first:?}, {second:?}");
            for ((listen, _), (sent, expected)) in listening.into_iter().zip(sent.iter().zip([400, 300])) {
                assert_eq!(sent.sent.measured, expected);
                let received = agent.ask(Request::Collect { listen }, "collect", LIMIT).unwrap().1;
                assert_eq!(side(received).received.measured, expected);
            }
        }
    }
}

/// A duplicate request is done once. A failure or an unknown request is answered with its own id.
pub(crate) fn does_once_what_is_asked_twice(end: CoordinatorEnd) {
    let mut stream = LineStream { requests: end.requests, answers: BufReader::new(end.answers).lines() };
    let spec = Box::new(spec(Family::Ipv6, Transport::Udp, Probe::Stream, Pacing::Schedule(500.0), 200));
    stream.ask(9, &Request::Hello { oldest: VERSIONS.0, newest: VERSIONS.1 });
    assert!(matches!(stream.read_answer(), Numbered { id: 9, body: Answer::Hello { .. } }));
    let listen = Request::Listen { spec: spec.clone(), address: Family::Ipv6.loopback().into() };
    stream.ask(1, &listen);
    let first = stream.read_answer();
    stream.ask(1, &listen);
    // Another receiver would have another port.
    assert_eq!(stream.read_answer(), first);
    let Answer::Listening { address: to } = first.body else { panic!("{first:?}") };
    let from = Family::Ipv6.loopback().into();
    let send = Request::Send(SendArm { spec, from, to, waiting: None });
    stream.ask(2, &send);
    stream.ask(2, &send);
    stream.ask(3, &Request::Collect { listen: 99 });
    stream.write_line(br#"{"id":7,"body":{"fly":{}}}"#);
    for id in [3, 7] {
        let failed = stream.read_answer();
        assert_eq!(failed.id, id);
        assert!(matches!(failed.body, Answer::Failed { .. }), "{failed:?}");
    }
    let sent = stream.read_answer();
    assert_eq!(sent.id, 2);
    stream.ask(4, &Request::Collect { listen: 1 });
    // The answer of the first request to send also served the duplicate: the next answer is this one's.
    let received = stream.read_answer();
    assert_eq!(received.id, 4);
    let sent = side(sent.body);
    let received = side(received.body);
    assert_eq!((sent.sent.measured, received.received.measured), (100, 100));
    assert_eq!(received.received.strays, 0);
}

/// An agent's byte stream, without a client.
struct LineStream {
    requests: Box<dyn Write + Send>,
    answers: Lines<BufReader<Box<dyn Read + Send>>>,
}

impl LineStream {
    fn ask(&mut self, id: u64, body: &Request) {
        self.write_line(&serde_json::to_vec(&Numbered { id, body }).unwrap());
    }

    fn write_line(&mut self, line: &[u8]) {
        self.requests.write_all(&[line, b"\n"].concat()).unwrap();
        self.requests.flush().unwrap();
    }

    fn read_answer(&mut self) -> Numbered<Answer> {
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }
}

/// When an agent is gone, every request in progress reports that.
pub(crate) fn is_known_as_gone(end: CoordinatorEnd) {
    let (mut agent, hang_up) = client("away", end);
    let spec = spec(Family::Ipv4, Transport::Udp, Probe::Stream, Pacing::Flood, 20);
    let (listen, _) = listen(&mut agent, &spec);
    // A receiver whose sender never comes answers after a timeout; by then the coordinator is gone.
    hang_up();
    let asked = agent.ask(Request::Collect { listen }, "collect", LIMIT);
    assert!(matches!(asked, Err(AgentError::Gone { .. })), "{asked:?}");
}
