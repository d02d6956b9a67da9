//! Who reads the page of `stacklab serve`, and what holds it up.

use crate::support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::program::Program;

const LIMIT: Duration = Duration::from_secs(20);

/// Half a request.
fn begin_request(address: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn half_a_request_holds_no_place_at_the_page() {
    let program = Program::new();
    let mut serving = program.start(&["serve", "--listen", ":0"]);
    serving.wait_for("http://", LIMIT);
    let said = serving.stderr();
    let (address, rest) = said.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).unwrap();
    let token = rest.split_once("token=").unwrap().1.split_whitespace().next().unwrap();
    let begun = Instant::now();
    let halves: Vec<TcpStream> = (0..300).map(|_| begin_request(address, token)).collect();
    let mut whole = begin_request(address, token);
    whole.write_all(b"Connection: close\r\n\r\n").unwrap();
    whole.set_read_timeout(Some(2 * LIMIT)).unwrap();
    let mut answer = String::new();
    whole.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The oldest ones have given way, long before the 10 s that each had for its header.
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    let mut first = &halves[0];
    first.set_read_timeout(Some(LIMIT)).unwrap();
    let mut rest = Vec::new();
    assert!(first.read_to_end(&mut rest).is_ok(), "half a request is kept open");
    // A page of another site reads nothing, and nobody without the token.
    for header in
        [format!("Authorization: Bearer {token}\r\nSec-Fetch-Site: cross-site"), "Accept: */*".to_owned()]
    {
        let mut foreign = TcpStream::connect(address).unwrap();
        let request = format!(
            "GET /api/campaigns HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n"
        );
        foreign.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        foreign.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
}
