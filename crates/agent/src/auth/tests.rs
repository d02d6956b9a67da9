//! Handshakes over real connections: right, wrong, replayed, forged, silent.

use super::*;
use crate::tls::{Identity, secure};
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const LIMIT: Duration = Duration::from_secs(5);

fn connection() -> (Channel, Channel) {
    let (agent, coordinator) = streams();
    (agent.into(), coordinator.into())
}

fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, there)
}

/// Both ends of a connection inside a TLS session with this agent.
fn session(identity: &Identity) -> (Channel, Channel) {
    let (agent, coordinator) = streams();
    let deadline = Instant::now() + LIMIT;
    thread::scope(|scope| {
        let accepted = scope.spawn(move || identity.accept(agent, deadline).unwrap());
        let secured = secure(coordinator, identity.fingerprint, deadline).unwrap();
        (accepted.join().unwrap(), secured)
    })
}

/// What the agent thinks of a coordinator with this key, and the other way round.
fn connect(
    gate: &Gate,
    key: Option<&Key>,
    tickets: Vec<Ticket>,
) -> (Option<Vec<AddressPair>>, Result<(), String>) {
    connect_over(connection(), gate, key, tickets)
}

fn connect_over(
    (agent, coordinator): (Channel, Channel),
    gate: &Gate,
    key: Option<&Key>,
    tickets: Vec<Ticket>,
) -> (Option<Vec<AddressPair>>, Result<(), String>) {
    thread::scope(|scope| {
        let admitted = scope.spawn(move || {
            let admitted = gate.admit(&agent, LIMIT).ok()??;
            admitted.welcome(&agent).unwrap();
            Some(admitted.addresses)
        });
        let done = handshake(&coordinator, key, tickets, LIMIT).map_err(|error| error.to_string());
        drop(coordinator);
        (admitted.join().unwrap(), done)
    })
}

#[test]
fn both_sides_prove_the_key_and_strangers_get_nothing() {
    let key = Key::generate();
    let other = Key::generate();
    let gate = Gate::new(Some(key.clone()));
    let (admitted, done) = connect(&gate, Some(&key), Vec::new());
    let local: ScopedAddr = "127.0.0.1".parse().unwrap();
    assert_eq!(admitted, Some(vec![AddressPair { peer: local.clone(), local }]));
    assert_eq!(done, Ok(()));
    let (admitted, done) = connect(&gate, Some(&other), Vec::new());
    assert!(admitted.is_none() && done.unwrap_err().contains("the key is not this agent's"));
    let (admitted, done) = connect(&gate, None, Vec::new());
    assert!(admitted.is_none() && done.unwrap_err().contains("STACKLAB_KEY"));
    let open = Gate::new(None);
    assert!(matches!(connect(&open, None, Vec::new()), (Some(_), Ok(()))));
    // No downgrade: whoever pretends to be open is not the agent of this key.
    assert!(connect(&open, Some(&key), Vec::new()).1.unwrap_err().contains("the agent is open"));
}

/// An agent's gate, and a coordinator that speaks to it with the same challenge each time.
struct Replay {
    gate: Gate,
    key: Key,
    own: String,
}

impl Replay {
    /// Whether the gate does not refuse a coordinator that speaks this version, and responds like this.
    fn speak(&self, stacklab: u32, response: impl FnOnce(&Challenge) -> Response) -> bool {
        let (agent, coordinator) = connection();
        thread::scope(|scope| {
            let admitted = scope.spawn(|| self.gate.admit(&agent, LIMIT).unwrap().is_some());
            coordinator.say(&Hello { stacklab, challenge: self.own.clone() }).unwrap();
            let theirs: Challenge = coordinator.hear(Instant::now() + LIMIT).unwrap();
            coordinator.say(&response(&theirs)).unwrap();
            // Whoever is admitted hears it later, and whoever wants a ticket has it.
            let is_admitted = admitted.join().unwrap();
            is_admitted || !matches!(coordinator.hear(Instant::now() + LIMIT), Ok(Welcome::Refused(_)))
        })
    }

    fn answer(&self, theirs: &Challenge, purpose: Purpose) -> Response {
        let parts = ["stacklab coordinator", "2", "measure", &theirs.challenge, &self.own, ""];
        Response { proof: Some(self.key.proof(&parts)), purpose, tickets: Vec::new() }
    }
}

#[test]
fn a_replayed_handshake_opens_nothing() {
    let key = Key::generate();
    let replay = Replay { gate: Gate::new(Some(key.clone())), key, own: challenge() };
    let mut heard = None;
    assert!(replay.speak(VERSION, |theirs| {
        let response = replay.answer(theirs, Purpose::Measure);
        heard = response.proof.clone();
        response
    }));
    // Replayed, for another purpose, and with the agent's own role.
    let old = Response { proof: heard, ..replay.answer(&none(), Purpose::Measure) };
    assert!(!replay.speak(VERSION, |_| old));
    assert!(!replay.speak(VERSION, |theirs| replay.answer(theirs, Purpose::Address)));
    assert!(!replay.speak(VERSION, |theirs| {
        let parts = ["stacklab agent", "2", "measure", &theirs.challenge, &replay.own, ""];
        Response { proof: Some(replay.key.proof(&parts)), ..replay.answer(theirs, Purpose::Measure) }
    }));
    assert!(
        !replay
            .speak(VERSION, |theirs| { Response { proof: None, ..replay.answer(theirs, Purpose::Measure) } })
    );
    assert!(!replay.speak(1, |theirs| replay.answer(theirs, Purpose::Measure)));
}

/// What a coordinator with this key says of whoever listens in the agent's place, has the coordinator's challenge as
/// its own one, and answers like this.
fn impostor(
    key: &Key,
    version: u32,
    answer: impl Fn(&Hello, &Response) -> Welcome + Send,
) -> Result<(), String> {
    let (agent, coordinator) = connection();
    thread::scope(|scope| {
        scope.spawn(move || {
            let hello: Hello = agent.hear(Instant::now() + LIMIT).unwrap();
            let challenge = hello.challenge.clone();
            agent.say(&Challenge { stacklab_agent: version, challenge, open: false }).unwrap();
            if let Ok(response) = agent.hear(Instant::now() + LIMIT) {
                let _ = agent.say(&answer(&hello, &response));
            }
        });
        let done = handshake(&coordinator, Some(key), Vec::new(), LIMIT).map_err(|error| error.to_string());
        drop(coordinator);
        done
    })
}

/// The answer of an agent that knows the key.
fn prove(key: &Key, hello: &Hello) -> Welcome {
    let parts = ["stacklab agent", "2", "measure", &hello.challenge, &hello.challenge, ""];
    Welcome::Proof(Some(key.proof(&parts)))
}

#[test]
fn impostor_agent_without_the_key_is_refused() {
    let key = Key::generate();
    assert_eq!(impostor(&key, VERSION, |hello, _| prove(&key, hello)), Ok(()));
    let said = impostor(&key, 1, |hello, _| prove(&key, hello)).unwrap_err();
    assert!(said.contains("it speaks handshake version 1"));
    // None, made up, and the coordinator's own one.
    for proof in [None, Some("00".to_owned()), Some(Key::generate().proof(&["stacklab agent"]))] {
        let said = impostor(&key, VERSION, |_, _| Welcome::Proof(proof.clone())).unwrap_err();
        assert!(said.contains("it does not know the key"), "{said}");
    }
    let said = impostor(&key, VERSION, |_, heard| Welcome::Proof(heard.proof.clone())).unwrap_err();
    assert!(said.contains("it does not know the key"), "{said}");
    let said =
        impostor(&key, VERSION, |_, _| Welcome::Refused("\u{1b}]0;title\u{7}".to_owned())).unwrap_err();
    assert_eq!(said, "it refuses: \u{fffd}]0;title\u{fffd}");
    let (agent, coordinator) = connection();
    agent.say(&Welcome::Refused("a\rb".to_owned())).unwrap();
    let said = handshake(&coordinator, Some(&key), Vec::new(), LIMIT).unwrap_err().to_string();
    assert_eq!(said, "it refuses: a\u{fffd}b");
}

#[test]
fn a_proof_is_good_in_one_tls_session_only() {
    let key = Key::generate();
    let identity = Identity::generate();
    let gate = Gate::new(Some(key.clone()));
    let (admitted, done) = connect_over(session(&identity), &gate, Some(&key), Vec::new());
    assert!(admitted.is_some() && done.is_ok(), "{done:?}");
    // Whoever has the agent's TLS key, stands between and passes on all that both say.
    let (between, coordinator) = session(&identity);
    let (agent, onward) = session(&identity);
    let mut towards = (between.clone(), onward.clone());
    let mut back = (onward, between);
    thread::scope(|scope| {
        scope.spawn(move || io::copy(&mut towards.0, &mut towards.1));
        scope.spawn(move || io::copy(&mut back.0, &mut back.1));
        let (admitted, done) = connect_over((agent, coordinator), &gate, Some(&key), Vec::new());
        assert!(admitted.is_none() && done.unwrap_err().contains("the key is not this agent's"));
    });
}

fn none() -> Challenge {
    Challenge { stacklab_agent: VERSION, challenge: String::new(), open: false }
}

#[test]
fn a_ticket_shows_an_address_and_cannot_be_made_up() {
    let key = Key::generate();
    let gate = Gate::new(Some(key.clone()));
    let (agent, coordinator) = connection();
    let ticket = thread::scope(|scope| {
        scope.spawn(|| assert!(gate.admit(&agent, LIMIT).unwrap().is_none()));
        show_address(&coordinator, Some(&key), LIMIT).unwrap()
    });
    let victim = AddressPair { peer: "192.0.2.1".parse().unwrap(), ..ticket.addresses.clone() };
    let forged = Ticket { addresses: victim.clone(), ..ticket.clone() };
    let late = Ticket { until_s: ticket.until_s + 1, ..ticket.clone() };
    let other = Gate::new(Some(key.clone())).ticket(victim);
    let (admitted, _) = connect(&gate, Some(&key), vec![forged, late, other, ticket.clone()]);
    assert_eq!(admitted.unwrap(), [ticket.addresses.clone(), ticket.addresses.clone()]);
    let (admitted, _) = connect(&gate, Some(&key), vec![ticket; 2 * MAX_TICKETS]);
    assert_eq!(admitted.unwrap().len(), 1 + MAX_TICKETS);
}

#[test]
fn a_ticket_expires() {
    static SECONDS: AtomicU64 = AtomicU64::new(1000);
    let key = Key::generate();
    let clock = Box::new(|| SECONDS.load(Ordering::Relaxed));
    let gate = Gate { clock, ..Gate::new(Some(key.clone())) };
    let here: ScopedAddr = "127.0.0.1".parse().unwrap();
    let shown = AddressPair { peer: "127.0.0.2".parse().unwrap(), local: here.clone() };
    let ticket = gate.ticket(shown.clone());
    let own = AddressPair { peer: here.clone(), local: here };
    let last = 1000 + TICKET_SECONDS;
    for (now, addresses) in [(last, vec![own.clone(), shown]), (last + 1, vec![own])] {
        SECONDS.store(now, Ordering::Relaxed);
        let (admitted, _) = connect(&gate, Some(&key), vec![ticket.clone()]);
        assert_eq!(admitted.unwrap(), addresses);
    }
}

#[test]
fn leaves_a_peer_that_speaks_after_a_refusal() {
    let gate = Gate::new(Some(Key::generate()));
    let (agent, mut coordinator) = connection();
    coordinator.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            // It ends, however the test does.
            let end = Instant::now() + 4 * LIMIT;
            while Instant::now() < end && coordinator.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let began = Instant::now();
        assert!(gate.admit(&agent, LIMIT).unwrap().is_none());
        // Not when the peer has ended.
        assert!(began.elapsed() < 2 * LIMIT, "{:?}", began.elapsed());
        agent.stream().shutdown(std::net::Shutdown::Both).unwrap();
    });
}

#[test]
fn refuses_noise_and_silence_in_time() {
    let gate = Gate::new(Some(Key::generate()));
    for noise in ["GET / HTTP/1.1\r\n\r\n".to_owned(), "\n".to_owned(), "x".repeat(MAX_LENGTH + 10)] {
        let (agent, mut coordinator) = connection();
        coordinator.write_all(noise.as_bytes()).unwrap();
        assert!(gate.admit(&agent, 4 * LIMIT).unwrap().is_none());
        let mut said = String::new();
        drop(agent);
        let _ = coordinator.read_to_string(&mut said);
        // Not that it was late: its end is not waited for.
        assert!(said.contains(NO_COORDINATOR), "{said}");
    }
    let (agent, _coordinator) = connection();
    assert!(gate.admit(&agent, Duration::from_millis(100)).unwrap().is_none());
    let hostile = "\u{1b}]0;title\u{7}";
    assert_eq!(printable_text(hostile), "\u{fffd}]0;title\u{fffd}");
}
