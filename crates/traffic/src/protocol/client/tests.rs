//! What a coordinator makes of an agent's byte stream.

use super::*;
use std::sync::atomic::AtomicU64;

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn unparsable_answer_is_an_error_with_its_start() {
    let line = format!("{{\"id\":1,\"body\":{{\"fly\":\"{}\"}}}}\n", "x".repeat(200));
    let mut client = AgentClient::new("far", io::Cursor::new(line.clone()), io::sink(), &NEVER);
    let error = client.hello().unwrap_err();
    let AgentError::Faulty { host, what } = &error else { panic!("{error:?}") };
    assert!(host == "far" && what.ends_with(&format!(": {}", &line[..80])), "{what}");
    assert!(error.to_string().contains("far") && error.to_string().contains("\"fly\""), "{error}");
    // What it says does not go over what stands before it.
    let mut client = AgentClient::new("far", io::Cursor::new("no\r\u{1b}json\n"), io::sink(), &NEVER);
    let error = client.hello().unwrap_err().to_string();
    assert!(error.ends_with("no\u{fffd}\u{fffd}json"), "{error:?}");
}

#[test]
fn a_number_that_sums_would_overflow_is_an_error() {
    for number in [u64::MAX.to_string(), i64::MIN.to_string()] {
        let line = format!("{{\"id\":1,\"body\":{{\"clock\":{{\"now_ns\":{number}}}}}}}\n");
        let mut client = AgentClient::new("far", io::Cursor::new(line), io::sink(), &NEVER);
        let error = client.clock_offset().unwrap_err().to_string();
        assert!(error.contains("far") && error.contains(number.trim_start_matches('-')), "{error}");
    }
}

/// An agent that says the same line without end, and how many bytes of it were taken.
struct Endless(Arc<AtomicU64>);

impl Read for Endless {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let line = b"{\"id\":7,\"body\":{\"failed\":{\"reason\":\"x\"}}}\n";
        // It has an end, for a client that goes on reading.
        let is_over = self.0.load(Ordering::Relaxed) > 10_000_000;
        let count = if is_over { 0 } else { line.len().min(room.len()) };
        room[..count].copy_from_slice(&line[..count]);
        self.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[test]
fn an_agent_that_says_too_much_waits() {
    let taken = Arc::new(AtomicU64::new(0));
    let mut client = AgentClient::new("far", Endless(Arc::clone(&taken)), io::sink(), &NEVER);
    while taken.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    // Without a bound, megabytes are taken by then.
    thread::sleep(Duration::from_millis(200));
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken < 100_000, "{taken} bytes were taken");
    assert!(client.hello().unwrap_err().to_string().contains("request 7, which was not made"));
}

#[test]
fn an_answer_that_comes_twice_is_an_error() {
    for (ids, taken) in [([1, 2, 2], true), ([1, 1, 2], false)] {
        let said = ids.map(|id| format!("{{\"id\":{id},\"body\":{{\"clock\":{{\"now_ns\":5}}}}}}\n"));
        let mut client = AgentClient::new("far", io::Cursor::new(said.concat()), io::sink(), &NEVER);
        let [first, second] = [(); 2].map(|()| client.start(Request::Clock, "tell the time").unwrap());
        let second = client.finish(second, FACTS_LIMIT);
        assert_eq!(second.is_ok(), taken, "{second:?}");
        match second {
            Ok(_) => assert!(client.finish(first, FACTS_LIMIT).is_ok()),
            Err(error) => assert!(error.to_string().contains("answer to request 1,"), "{error}"),
        }
    }
}

#[test]
fn version_that_was_not_asked_for_is_refused() {
    for (version, is_taken) in [(VERSIONS.1, true), (VERSIONS.1 + 1, false), (VERSIONS.0 - 1, false)] {
        let line =
            format!("{{\"id\":1,\"body\":{{\"hello\":{{\"version\":{version},\"program\":\"x\"}}}}}}\n");
        let mut client = AgentClient::new("far", io::Cursor::new(line), io::sink(), &NEVER);
        match client.hello() {
            Ok(()) => assert!(is_taken),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    !is_taken && error.contains(&format!("version {version} of the protocol")),
                    "{error}"
                );
            }
        }
    }
}
