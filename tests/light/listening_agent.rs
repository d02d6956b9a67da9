//! The conduct of a listening agent: one coordinator at a time, and invalid input that it tolerates.

use crate::support;

use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::listening::Listening;
use support::program::{Outcome, Program, children, code, signal};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_busy_agent_says_so_and_serves_the_next_one() {
    let there = Listening::start("", &[]);
    let other = Program::new();
    let mut first = other.start(&["measure", "tcp", "::1", "-t", "600", "-p", &there.port]);
    while children(there.agent.pid()).is_empty() {
        assert!(first.is_running());
        thread::sleep(Duration::from_millis(5));
    }
    for host in ["127.0.0.1", "::1"] {
        let refused =
            there.measure(&["udp", host, "-t", "1"]).expect(code::HOST).says(&["busy", "try again"]);
        // Nobody is told with whom it is busy.
        assert!(host == "::1" || !refused.stderr.contains("::1"), "{refused}");
    }
    assert!(first.is_running());
    signal(first.pid(), "INT");
    first.end(SOON).expect(code::INTERRUPTED);
    // One after another without a pause, as in a script.
    for _ in 0..5 {
        there.serves();
    }
}

/// The next line that it says, once a request was written.
fn answer_to(stream: &TcpStream, request: &[u8]) -> Value {
    // The agent may have refused and closed before all of it was written.
    let _ = (&mut &*stream).write_all(request);
    // No more than the line: the next one is for the next call.
    let mut line = Vec::new();
    let mut byte = [0];
    while (&mut &*stream).read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line);
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn garbage_is_refused_and_the_agent_goes_on() {
    let there = Listening::start("", &[]);
    let endless = vec![b'x'; 100_000];
    let noise: Vec<u8> = (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80).collect();
    let requests: [&[u8]; 5] =
        [b"GET / HTTP/1.0\r\n\r\n", b"\n", b"{\"id\":1,\"body\":\"facts\"}\n", &endless, &noise];
    for request in requests {
        let stream = there.connect();
        let challenge = answer_to(&stream, b"");
        assert!(challenge["challenge"].is_string(), "{challenge}");
        let answer = answer_to(&stream, request);
        let reason = answer["refused"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(reason.contains("this is a stacklab agent"), "{reason}");
        // Closed, or reset if more was sent than was read.
        match (&stream).read(&mut [0; 100]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{other:?}"),
        }
    }
    there.serves();
}

#[test]
fn silent_connections_keep_nobody_waiting() {
    let there = Listening::start("", &[]);
    // How long it takes on this machine at this time.
    let alone = Instant::now();
    there.serves();
    let alone = alone.elapsed();
    let silent: Vec<TcpStream> = (0..5).map(|_| there.connect()).collect();
    (&silent[0]).write_all(b"{\"id\":").unwrap();
    let start = Instant::now();
    there.serves();
    assert!(start.elapsed() < 3 * alone + Duration::from_secs(4), "{:?}, {alone:?} alone", start.elapsed());
    // Nor does it hold a place for ever.
    assert!(
        (&silent[4]).read_to_end(&mut Vec::new()).is_ok(),
        "it is still heard after {:?}",
        start.elapsed()
    );
    drop(silent);
}

#[test]
fn a_coordinator_cannot_fill_the_agents_memory() {
    let there = Listening::start("", &[]);
    let stream = there.greeted("127.0.0.1");
    stream.set_read_timeout(Some(SOON)).unwrap();
    let hello = b"{\"id\":1,\"body\":{\"hello\":{\"oldest\":1,\"newest\":9}}}\n";
    assert!(answer_to(&stream, hello)["body"]["hello"]["version"].is_u64());
    let answer = answer_to(&stream, &vec![b'x'; 10 << 20]);
    assert!(answer["body"]["failed"]["reason"].is_string(), "{answer}");
    drop(stream);
    there.serves();
}

#[test]
fn agent_is_free_again_when_its_coordinator_is_gone() {
    let there = Listening::start("", &[]);
    for how in ["KILL", "INT"] {
        let other = Program::new();
        let mut first = other.start(&["measure", "tcp", "127.0.0.1", "-t", "60", "-R", "-p", &there.port]);
        while children(there.agent.pid()).is_empty() || children(first.pid()).is_empty() {
            assert!(first.is_running());
            thread::sleep(Duration::from_millis(5));
        }
        // Proceeds into the trial.
        thread::sleep(Duration::from_millis(500));
        let here = children(first.pid());
        signal(first.pid(), how);
        if how == "KILL" {
            assert!(first.kill());
        } else {
            first.end(SOON).expect(code::INTERRUPTED).says(&["interrupted"]);
        }
        let start = Instant::now();
        while !children(there.agent.pid()).is_empty() || here.iter().any(|pid| has_program(*pid)) {
            assert!(start.elapsed() < SOON, "an agent outlives SIG{how} of its coordinator");
            thread::sleep(Duration::from_millis(10));
        }
        there.serves();
    }
}

/// Whether a process still runs something; one that has ended and was not waited for does not.
fn has_program(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/exe")).exists()
}

#[test]
fn an_agent_ends_when_it_is_told_to() {
    // A reflector beside it ends at the same signal.
    for (how, options) in [("INT", &[][..]), ("TERM", &[]), ("TERM", &["--stamp=127.0.0.1:0"])] {
        let there = Listening::start("", options);
        let mut stream = there.greeted("127.0.0.1");
        let Listening { program, agent, .. } = there;
        stream.write_all(b"{\"id\":1,\"body\":{\"hello\":{\"oldest\":1,\"newest\":9}}}\n").unwrap();
        BufReader::new(&stream).read_line(&mut String::new()).unwrap();
        let [served] = children(agent.pid())[..] else { panic!("one process serves") };
        signal(agent.pid(), how);
        agent.end(SOON).expect(code::DONE);
        let start = Instant::now();
        while has_program(served) {
            assert!(start.elapsed() < SOON, "the serving process outlives SIG{how}");
            thread::sleep(Duration::from_millis(10));
        }
        drop(program);
    }
}

#[test]
fn once_is_once() {
    let there = Listening::start("[::1]", &["--once"]);
    // A peer with a wrong greeting does not count.
    let stream = TcpStream::connect(format!("[::1]:{}", there.port)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    (&stream).read_to_string(&mut String::new()).unwrap();
    there.measure(&["udp", "::1", "-n", "10", "--pps", "1000"]).expect(code::DONE);
    there.agent.end(SOON).expect(code::DONE);
}

#[test]
fn an_agent_listens_where_it_is_told() {
    let there = Listening::start("127.0.0.1", &[]);
    there.serves();
    there.measure(&["tcp", "::1", "-n", "10"]).expect(code::HOST).says(&["no agent could be reached"]);
    let place = format!("127.0.0.1:{}", there.port);
    let second = there.program.command(&["agent", "--listen", &place]);
    Outcome::of(second).expect(code::ELSE).says(&[&place, "could not listen", "another"]);
}
