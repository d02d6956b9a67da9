//! An agent does several things at once and answers each request when it is done.

mod support;

use stacklab_model::{Family, Pacing, Probe, Side, Transport};
use stacklab_traffic::client::{AgentClient, AgentError};
use stacklab_traffic::message::{Answer, Numbered, Request};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use support::{client, spec, stream};

const LIMIT: Duration = Duration::from_secs(30);

fn side(answer: Answer) -> Side {
    match answer {
        Answer::Done(side) => *side,
        other => panic!("{other:?}"),
    }
}

fn listen(agent: &mut AgentClient, spec: &stacklab_model::TrialSpec) -> (u64, SocketAddr) {
    let request = Request::Listen { spec: Box::new(spec.clone()), address: spec.family.loopback() };
    match agent.ask(request, "listen", LIMIT).unwrap() {
        (id, Answer::Listening { address }) => (id, address),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_agent_sends_twice_and_receives_twice_at_once_and_answers_meanwhile() {
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            let mut agent = client("both", stream());
            let spec =
                |milliseconds| spec(family, transport, Probe::Stream, Pacing::Schedule(500.0), milliseconds);
            let specs = [spec(400), spec(200)];
            let listening = specs.each_ref().map(|spec| listen(&mut agent, spec));
            let start = Instant::now();
            let mut sends = Vec::new();
            for (spec, (_, to)) in specs.iter().zip(listening) {
                let request = Request::Send { spec: Box::new(spec.clone()), from: family.loopback(), to };
                sends.push(agent.start(request, "send").unwrap());
            }
            assert!(matches!(agent.ask(Request::Facts, "tell its facts", LIMIT), Ok((_, Answer::Facts(_)))));
            let meanwhile = start.elapsed();
            // Finished in the other order than they end in.
            let sent: Vec<Side> =
                sends.into_iter().map(|send| side(agent.finish(send, LIMIT).unwrap())).collect();
            let all = start.elapsed();
            assert!(meanwhile < Duration::from_millis(400), "facts were answered after {meanwhile:?}");
            assert!(all < Duration::from_millis(600), "410 ms beside 210 ms took {all:?}");
            for ((listen, _), (sent, expected)) in listening.into_iter().zip(sent.iter().zip([200, 100])) {
                assert_eq!(sent.sent.measured, expected);
                let received = agent.ask(Request::Collect { listen }, "collect", LIMIT).unwrap().1;
                assert_eq!(side(received).received.measured, expected);
            }
        }
    }
}

#[test]
fn a_request_that_comes_twice_is_done_once_and_a_failure_has_its_own_id() {
    let mut stream = stream();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |id, body| {
        let mut line = serde_json::to_vec(&Numbered { id, body }).unwrap();
        line.push(b'\n');
        stream.write_all(&line).unwrap();
    };
    let mut answer = || serde_json::from_str::<Numbered<Answer>>(&answers.next().unwrap().unwrap()).unwrap();
    let spec = spec(Family::Ipv6, Transport::Udp, Probe::Stream, Pacing::Schedule(500.0), 200);
    let listen = || Request::Listen { spec: Box::new(spec.clone()), address: Family::Ipv6.loopback() };
    ask(1, listen());
    let first = answer();
    ask(1, listen());
    // Another receiver would have another port.
    assert_eq!(answer(), first);
    let Answer::Listening { address: to } = first.body else { panic!("{first:?}") };
    let send = || Request::Send { spec: Box::new(spec.clone()), from: Family::Ipv6.loopback(), to };
    ask(2, send());
    ask(2, send());
    ask(3, Request::Collect { listen: 99 });
    let failed = answer();
    assert_eq!(failed.id, 3);
    assert!(matches!(failed.body, Answer::Failed { .. }), "{failed:?}");
    let sent = answer();
    assert_eq!(sent.id, 2);
    ask(4, Request::Collect { listen: 1 });
    // The second request to send was answered by the first one's answer: the next answer is this one's.
    let received = answer();
    assert_eq!(received.id, 4);
    let (sent, received) = (side(sent.body), side(received.body));
    assert_eq!((sent.sent.measured, received.received.measured), (100, 100));
    assert_eq!(received.received.strays, 0);
}

#[test]
fn an_agent_that_is_gone_is_known_as_gone_by_every_request_under_way() {
    let stream = stream();
    let other_end = stream.try_clone().unwrap();
    let mut agent = client("away", stream);
    let spec = spec(Family::Ipv4, Transport::Udp, Probe::Stream, Pacing::Flood, 20);
    let (listen, _) = listen(&mut agent, &spec);
    // A receiver whose sender never comes answers when it has waited; nobody will be there by then.
    other_end.shutdown(std::net::Shutdown::Both).unwrap();
    let asked = agent.ask(Request::Collect { listen }, "collect", LIMIT);
    assert!(matches!(asked, Err(AgentError::Gone { .. })), "{asked:?}");
}
