//! Greetings over real connections: right, wrong, replayed, forged, silent.

use super::*;
use std::net::TcpListener;
use std::thread;

const LIMIT: Duration = Duration::from_secs(5);

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, there)
}

/// What the agent thinks of a coordinator with this key, and the other way round.
fn meet(
    gate: &Gate,
    key: Option<&Key>,
    tickets: Vec<Ticket>,
) -> (Option<Vec<AddressPair>>, Result<(), String>) {
    let (agent, coordinator) = connection();
    thread::scope(|scope| {
        let admitted = scope.spawn(move || {
            let admitted = gate.admit(&agent, LIMIT).ok()??;
            admitted.welcome(&agent).unwrap();
            Some(admitted.addresses)
        });
        let greeted = greet(&coordinator, key, tickets, LIMIT).map_err(|error| error.to_string());
        drop(coordinator);
        (admitted.join().unwrap(), greeted)
    })
}

#[test]
fn both_prove_that_they_know_the_key_and_nobody_else_is_served() {
    let (key, other) = (Key::generate(), Key::generate());
    let gate = Gate::new(Some(key.clone()));
    let (admitted, greeted) = meet(&gate, Some(&key), Vec::new());
    let local: ScopedAddr = "127.0.0.1".parse().unwrap();
    assert_eq!(admitted, Some(vec![AddressPair { peer: local.clone(), local }]));
    assert_eq!(greeted, Ok(()));
    let (admitted, greeted) = meet(&gate, Some(&other), Vec::new());
    assert!(admitted.is_none() && greeted.unwrap_err().contains("the key is not this agent's"));
    let (admitted, greeted) = meet(&gate, None, Vec::new());
    assert!(admitted.is_none() && greeted.unwrap_err().contains("STACKLAB_KEY"));
    let open = Gate::new(None);
    assert!(matches!(meet(&open, None, Vec::new()), (Some(_), Ok(()))));
    // No downgrade: whoever pretends to be open is not the agent of this key.
    assert!(meet(&open, Some(&key), Vec::new()).1.unwrap_err().contains("it is open"));
}

#[test]
fn what_was_heard_of_one_greeting_opens_no_other() {
    let key = Key::generate();
    let gate = Gate::new(Some(key.clone()));
    let spoken = |response: &dyn Fn(&Challenge) -> Response| {
        let (agent, coordinator) = connection();
        thread::scope(|scope| {
            let admitted = scope.spawn(|| gate.admit(&agent, LIMIT).unwrap().is_some());
            let theirs: Challenge = hear(&coordinator, Instant::now() + LIMIT).unwrap();
            say(&coordinator, &response(&theirs)).unwrap();
            admitted.join().unwrap()
        })
    };
    let mut heard = None;
    let own = challenge();
    let answer = |theirs: &Challenge, purpose: Purpose| {
        let parts = ["stacklab coordinator", "1", "measure", &theirs.challenge, &own];
        let proof = Some(key.proof(&parts));
        Response { stacklab: 1, challenge: own.clone(), proof, purpose, tickets: Vec::new() }
    };
    let first = std::cell::RefCell::new(&mut heard);
    assert!(spoken(&|theirs| {
        let response = answer(theirs, Purpose::Measure);
        **first.borrow_mut() = response.proof.clone();
        response
    }));
    // Replayed, for another purpose, and with the agent's own role.
    let old = heard.clone();
    assert!(!spoken(&|_| Response { proof: old.clone(), ..answer(&none(), Purpose::Measure) }));
    assert!(!spoken(&|theirs| answer(theirs, Purpose::Address)));
    assert!(!spoken(&|theirs| {
        let parts = ["stacklab agent", "1", "measure", &theirs.challenge, &own];
        Response { proof: Some(key.proof(&parts)), ..answer(theirs, Purpose::Measure) }
    }));
    assert!(!spoken(&|theirs| Response { proof: None, ..answer(theirs, Purpose::Measure) }));
    assert!(!spoken(&|theirs| Response { stacklab: 0, ..answer(theirs, Purpose::Measure) }));
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
    let (admitted, _) = meet(&gate, Some(&key), vec![forged, late, other, ticket.clone()]);
    assert_eq!(admitted.unwrap(), [ticket.addresses.clone(), ticket.addresses]);
}

#[test]
fn noise_and_silence_are_refused_in_time() {
    let gate = Gate::new(Some(Key::generate()));
    for noise in ["GET / HTTP/1.1\r\n\r\n".to_owned(), "\n".to_owned(), "x".repeat(LONGEST + 10)] {
        let (agent, mut coordinator) = connection();
        coordinator.write_all(noise.as_bytes()).unwrap();
        assert!(gate.admit(&agent, LIMIT).unwrap().is_none());
        let mut said = String::new();
        drop(agent);
        let _ = coordinator.read_to_string(&mut said);
        assert!(said.contains("this is an agent of stacklab"), "{said}");
    }
    let (agent, _coordinator) = connection();
    let began = Instant::now();
    assert!(gate.admit(&agent, Duration::from_millis(100)).unwrap().is_none());
    assert!(began.elapsed() < Duration::from_secs(2));
    let hostile = "\u{1b}]0;title\u{7}";
    assert_eq!(printable(hostile), "\u{fffd}]0;title\u{fffd}");
}
