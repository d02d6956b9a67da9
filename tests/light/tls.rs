//! Requests and answers inside TLS: with the agent of the fingerprint, with no other, and never without.

use crate::support;

use serde_json::json;
use stacklab_agent::auth::handshake;
use stacklab_agent::channel::Channel;
use stacklab_agent::key::Key;
use stacklab_agent::tls::{Fingerprint, Identity, TlsError, secure};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use support::listening::Listening;
use support::program::{KEY, Outcome, children, code, require_tool};

const LIMIT: Duration = Duration::from_secs(20);
const HERE: &str = "127.0.0.1";
/// Of no agent.
const OTHER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// An agent that speaks TLS, and its fingerprint.
fn agent(options: &[&str]) -> (Listening, String) {
    let there = Listening::start("", &[&["--tls"], options].concat());
    let said = there.agent.stderr();
    let fingerprint = said.split("TLS fingerprint ").nth(1).unwrap_or_else(|| panic!("none is said: {said}"));
    let fingerprint = fingerprint[..64].to_owned();
    (there, fingerprint)
}

fn measure(there: &Listening, host: &str, options: &[&str]) -> Outcome {
    there.program.run(&[&["measure", "udp", host, "-n", "10", "-p", &there.port], options].concat())
}

/// Passes all on to this port, and keeps it.
fn wire(to: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let to = format!("{HERE}:{to}");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    thread::spawn(move || {
        let (coordinator, _) = listener.accept().unwrap();
        let agent = TcpStream::connect(to).unwrap();
        for (mut from, mut to) in [
            (coordinator.try_clone().unwrap(), agent.try_clone().unwrap()),
            (agent.try_clone().unwrap(), coordinator.try_clone().unwrap()),
        ] {
            let keep = Arc::clone(&keep);
            thread::spawn(move || {
                let mut data = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut data) {
                    keep.lock().unwrap().extend(&data[..count]);
                    let _ = to.write_all(&data[..count]);
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    (port, seen)
}

#[test]
fn tls_measurement_cannot_be_read_on_the_way() {
    let (there, fingerprint) = agent(&["--once"]);
    let (port, seen) = wire(&there.port);
    let args = ["measure", "tcp", HERE, "-t", "0.2", "-p", &port, "--json", "--tls", &fingerprint];
    let run = there.program.run(&args).expect(code::DONE);
    assert!(run.stdout.contains("throughput"), "{run}");
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 2000, "only {} bytes were passed on", seen.len());
    for word in ["stacklab", "challenge", "hello", "body"] {
        assert!(!seen.windows(word.len()).any(|part| part == word.as_bytes()), "`{word}` can be read");
    }
    there.agent.end(LIMIT).expect(code::DONE);
    // One that goes on: both families, both directions, both families in turns, and one that is killed in its trial.
    let (there, fingerprint) = agent(&[]);
    for host in [HERE, "::1"] {
        measure(&there, host, &["--tls", &fingerprint]).expect(code::DONE);
        measure(&there, host, &["-R", "--tls", &fingerprint]).expect(code::DONE);
    }
    let both = ["measure", "udp", "127.0.0.1,::1", "--against", "ipv4", "-b", "10M", "-t", "1", "-p"];
    there.program.run(&[&both[..], &[&there.port[..], "--tls", &fingerprint]].concat()).expect(code::DONE);
    let long = ["measure", "udp", HERE, "-b", "1M", "-t", "60", "-p", &there.port, "--tls", &fingerprint];
    let mut killed = there.program.start(&long);
    while children(there.agent.pid()).is_empty() {
        assert!(killed.is_running(), "{}", killed.stderr());
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    killed.kill();
    measure(&there, HERE, &["--tls", &fingerprint]).expect(code::DONE);
}

#[test]
fn neither_side_speaks_plain_if_the_other_wants_tls() {
    let (there, fingerprint) = agent(&[]);
    let plain = Listening::start("", &[]);
    // Half a handshake, and then nothing.
    let mut slow = TcpStream::connect((HERE, there.port.parse::<u16>().unwrap())).unwrap();
    slow.write_all(&[22, 3, 1, 1, 0, 1]).unwrap();
    for host in [HERE, "::1"] {
        let start = Instant::now();
        measure(&there, host, &[]).expect(code::HOST).says(&[&there.port, "it requires TLS", "--tls"]);
        measure(&plain, host, &["--tls", &fingerprint]).expect(code::HOST).says(&["it does not speak TLS"]);
        measure(&there, host, &["--tls", OTHER]).expect(code::HOST).says(&["not the one of --tls"]);
        assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
        assert_eq!(children(there.agent.pid()), Vec::<u32>::new());
    }
    for wrong in ["", "1234", &OTHER[1..]] {
        measure(&there, HERE, &["--tls", wrong]).expect(code::REQUEST).says(&["64 hexadecimal digits"]);
    }
    // Its operator is told, and once only.
    let said = there.agent.stderr();
    assert!(
        said.contains(&format!("does not speak TLS: `stacklab measure` needs --tls {fingerprint}")),
        "{said}"
    );
    assert_eq!(said.matches("does not speak TLS").count(), 1, "{said}");
    // TLS does not replace the key.
    let mut unkeyed =
        there.program.command(&["measure", "udp", HERE, "-p", &there.port, "--tls", &fingerprint]);
    unkeyed.env("STACKLAB_KEY", "another-key-of-somebody-else");
    Outcome::of(unkeyed).expect(code::HOST).says(&["the key is not this agent's"]);
    slow.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(slow.read(&mut [0]).unwrap(), 0, "it was answered");
    measure(&there, HERE, &["--tls", &fingerprint]).expect(code::DONE);
}

#[test]
fn older_tls_and_certificates_are_refused() {
    require_tool("openssl", "openssl");
    let (there, _) = agent(&[]);
    let place = format!("{HERE}:{}", there.port);
    for (version, alert) in [("-tls1_2", "protocol version"), ("-tls1_3", "alert")] {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-connect", &place, version]).stdin(Stdio::null());
        let said = client.output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && text.contains(alert), "{version}: {text}");
    }
    assert_eq!(children(there.agent.pid()), Vec::<u32>::new());
}

#[test]
fn man_in_the_middle_with_another_key_hears_nothing() {
    let (there, fingerprint) = agent(&[]);
    let between = Identity::generate();
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let heard = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        between.accept(stream, Instant::now() + LIMIT)
    });
    let args = ["measure", "udp", HERE, "-n", "10", "-p", &port, "--tls", &fingerprint];
    there.program.run(&args).expect(code::HOST).says(&[&port, "another program answers there"]);
    let error = heard.join().unwrap().expect_err("the coordinator began a session");
    assert!(matches!(error, TlsError::Handshake(_)), "{error}");
}

#[test]
fn coordinator_that_takes_no_answers_holds_no_agent() {
    let (there, fingerprint) = agent(&["--idle-timeout", "2"]);
    let stream = TcpStream::connect(format!("{HERE}:{}", there.port)).unwrap();
    let to: Fingerprint = fingerprint.parse().unwrap();
    let mut channel: Channel = secure(stream, to, Instant::now() + LIMIT).unwrap();
    let key = Key::of(KEY, "the tests").unwrap();
    handshake(&channel, Some(&key), Vec::new(), LIMIT).unwrap();
    channel.stream().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let request =
        format!("{}\n", json!({"id": 1, "body": {"hello": {"oldest": 1, "newest": 9}}})).repeat(500);
    // Until neither its answers nor further requests go on.
    assert!((0..10_000).any(|_| channel.write_all(request.as_bytes()).is_err()), "it reads for ever");
    let start = Instant::now();
    while !children(there.agent.pid()).is_empty() {
        assert!(start.elapsed() < LIMIT, "it is held");
        thread::sleep(Duration::from_millis(20));
    }
    measure(&there, HERE, &["--tls", &fingerprint]).expect(code::DONE);
}
