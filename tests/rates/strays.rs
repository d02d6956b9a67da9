//! Strays: datagrams that reach a receiver's port beside the trial's own.

use crate::support;

use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};
use support::listening::Listening;
use support::program::{children, code};

const HERE: &str = "127.0.0.1";
/// Per second, of datagrams.
const RATE: u32 = 10_000;
/// Maximum time until the receiver listens.
const SOON: Duration = Duration::from_secs(10);

/// The port of the socket that the agent's process for its coordinator receives by; it is found as soon as it is there.
fn receiver(there: &Listening) -> u16 {
    let start = Instant::now();
    loop {
        let found = children(there.agent.pid()).into_iter().find_map(port_of);
        if let Some(port) = found {
            return port;
        }
        assert!(start.elapsed() < SOON, "the agent does not listen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The port of a process's UDP socket that has no peer.
fn port_of(process: u32) -> Option<u16> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let own: Vec<String> = files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter_map(|name| Some(name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let sockets = fs::read_to_string(format!("/proc/{process}/net/udp")).ok()?;
    sockets.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let has_peer = !fields[2].ends_with(":0000");
        let (_, port) = fields[1].split_once(':')?;
        (!has_peer && own.iter().any(|inode| inode == fields[9]))
            .then(|| u16::from_str_radix(port, 16).ok())?
    })
}

/// A run to the agent while strays are sent; they are from the coordinator's own address.
fn measured(words: &[&str], strays: impl FnOnce(&Listening)) -> Value {
    let there = Listening::start(HERE, &[]);
    let args = [&["measure", words[0], HERE, "--json", "-p", &there.port], &words[1..]].concat();
    let running = there.program.start(&args);
    strays(&there);
    let outcome = running.end(Duration::from_secs(60)).expect(code::DONE);
    let run: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    assert_eq!(run["status"], "valid", "{outcome}");
    run
}

/// Messages sent, those that arrived at the receiver's socket, and strays. A busy machine's socket may be full.
fn counts(run: &Value) -> [u64; 3] {
    let sent = read_count(run, &find_end(run, "sender")["sent"]["measured"]);
    let received = &find_end(run, "receiver")["received"];
    let arrived = read_count(run, &received["measured"]) + read_count(run, &run["drops"]["socket_buffer"]);
    [sent, arrived, read_count(run, &received["strays"])]
}

fn find_end<'a>(run: &'a Value, role: &str) -> &'a Value {
    let mut ends = run["ends"].as_array().unwrap().iter();
    ends.find(|end| end["role"] == role).unwrap_or_else(|| panic!("no {role}: {run}"))
}

#[track_caller]
fn read_count(run: &Value, value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no count: {run}"))
}

/// Sends so many datagrams to the receiver at the rate.
fn datagrams(there: &Listening, number: u32) {
    let port = receiver(there);
    let socket = UdpSocket::bind((HERE, 0)).unwrap();
    let start = Instant::now();
    for sent in 0..number {
        let due = start + Duration::from_secs(1) * sent / RATE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Of other sizes and contents than the trial's, also of its size. Refused once the receiver has gone.
        let _ = socket.send_to(&[sent as u8; 1500][..1 + (sent % 1400) as usize], (HERE, port));
    }
}

#[test]
fn stray_datagrams_change_no_count_and_no_verdict() {
    // Its flows share a socket without a peer, which takes everything.
    let several = ["udp", "-P", "3", "-t", "11", "--pps", "1000", "-l", "700"];
    let [sent, received, strays] = counts(&measured(&several, |there| datagrams(there, 100_000)));
    // A busy machine sends fewer than the rate asks for.
    assert!(sent > 1_000 && received == sent, "{received} of {sent} messages arrived");
    assert!((50_000..=100_000).contains(&strays), "{strays} strays were counted");
    // A single flow's socket has a peer after its first datagram; only what came before that reaches it.
    let one = ["udp", "-t", "2", "--pps", "1000", "-l", "700"];
    let [sent, received, _] = counts(&measured(&one, |there| datagrams(there, 10_000)));
    assert!(sent > 1_000 && received == sent, "{received} of {sent} messages arrived");
}
