//! Slow links with deep queues: measurements end in time and their figures are the link's. The tests need root.

use crate::support;

use stacklab_model::Family;
use std::time::{Duration, Instant};
use support::iperf3::Hosts;
use support::program::{Outcome, Running, code};

/// By how much a measurement may take longer than the time asked for.
const MORE: Duration = Duration::from_secs(30);

/// Two hosts, the first one's link shaped by `tc` with these options, and an agent on the second.
fn shaped(options: &str) -> (Hosts, Running) {
    let hosts = Hosts::new();
    if !options.is_empty() {
        hosts.run(0, &format!("tc qdisc replace dev st0 root tbf {options}")).expect(0);
    }
    let mut agent = hosts.program.started(hosts.command(1, "\"$STACKLAB\" agent --listen"));
    agent.wait_for("measures to it", Duration::from_secs(10));
    (hosts, agent)
}

/// Measures from the first host for this many seconds; fails if it takes longer than that and half a minute.
fn measure(hosts: &Hosts, words: &str, to: &str, seconds: u64) -> Outcome {
    let began = Instant::now();
    let (probe, options) = words.split_once(' ').unwrap_or((words, ""));
    let line = format!("\"$STACKLAB\" measure {probe} {to} {options} -t {seconds}");
    let outcome = hosts.run(0, &line);
    assert!(began.elapsed() < Duration::from_secs(seconds) + MORE, "{:?}: {outcome}", began.elapsed());
    outcome
}

/// A run's throughput, Mbit/s.
fn throughput(outcome: &Outcome) -> f64 {
    let run: serde_json::Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    run["values"]["throughput"]["measured"].as_f64().unwrap_or_else(|| panic!("{outcome}"))
}

#[test]
fn flows_at_a_rate_have_that_rate() {
    let (hosts, _agent) = shaped("");
    let to = hosts.address(1, Family::Ipv4);
    for (words, asked) in [("tcp -P 8 -b 10M --json", 10.0), ("tcp -P 8 -b 2M --json", 2.0)] {
        let rate = throughput(&measure(&hosts, words, &to, 3).expect(code::DONE));
        assert!((0.9..1.1).contains(&(rate / asked)), "{words}: {rate} Mbit/s");
    }
}

#[test]
fn a_stream_ends_though_its_queue_is_deep() {
    let (hosts, _agent) = shaped("rate 512kbit burst 1540 limit 64k");
    let to = hosts.address(1, Family::Ipv4);
    for words in ["tcp -P 8 --json", "tcp --json", "tcp -b 2M --json", "udp --json", "udp -b 2M --json"] {
        let rate = throughput(&measure(&hosts, words, &to, 2).expect(code::DONE));
        // Payload is less than the link carries, and TCP over a full queue less again.
        assert!((0.1..0.53).contains(&rate), "{words}: {rate} Mbit/s");
    }
}

#[test]
fn rows_count_bytes_as_they_are_read() {
    let (hosts, _agent) = shaped("rate 512kbit burst 1540 limit 64k");
    let outcome = measure(&hosts, "tcp -l 512K", &hosts.address(1, Family::Ipv4), 3).expect(code::DONE);
    let rows: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains(" - ")).collect();
    // A message takes 8 s: the first rows would have nothing.
    assert!(rows.len() >= 3 && rows[..2].iter().all(|row| !row.contains(" 0.0 B ")), "{outcome}");
}

#[test]
fn rows_stay_below_the_link_rate_despite_losses() {
    // The queue is full after half a second: segments are lost, and what is behind them is delivered all at once.
    let (hosts, _agent) = shaped("rate 512kbit burst 1540 limit 32k");
    let outcome = measure(&hosts, "tcp --json", &hosts.address(1, Family::Ipv4), 5).expect(code::DONE);
    let run: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let lost = run["values"]["retransmits"]["measured"].as_f64();
    assert!(lost.is_some_and(|lost| lost > 0.0), "{outcome}");
    let series = run["ends"][1]["series"].as_array().unwrap_or_else(|| panic!("{outcome}"));
    let mut bits = vec![0; 60];
    for row in series {
        let second = row["start_ns"].as_u64().expect("a start") / 1_000_000_000;
        bits[second as usize] += 8 * row["bytes"].as_u64().expect("bytes");
    }
    // What waits behind a lost segment comes when that is repeated, maybe seconds later, and the queue adds to it at
    // the end: no more has come at any time than the link let through. Before the first second two queues may have
    // come already that wait at the receiver: a segment is repeated a round trip, that is one queue, after its loss.
    let link = 512_000;
    let queue = 8 * 32 * 1024;
    let mut so_far = 0;
    for (second, bits) in (1..=5).zip(&bits) {
        so_far += bits;
        assert!(*bits > 0 && so_far < second * link + 3 * queue, "{so_far} bits in {second} s");
    }
}

#[test]
fn families_of_a_slow_path_have_trials_in_turns() {
    let (hosts, _agent) = shaped("rate 2mbit burst 1540 limit 64k");
    let both = [Family::Ipv4, Family::Ipv6].map(|family| hosts.address(1, family)).join(",");
    for words in ["udp --against ipv4", "tcp --against ipv4"] {
        measure(&hosts, words, &both, 10).expect(code::DONE).says(&["the path is slow", "trials in turns"]);
    }
}

#[test]
fn own_queue_drops_are_losses_with_iperf3_servers_too() {
    let (hosts, _agent) = shaped("rate 10mbit burst 15kb limit 100kb");
    let _server = hosts.their_server();
    let outcome = hosts.measure("udp", Family::Ipv4, "-b 100M -t 1").expect(code::DONE);
    assert!(outcome.stdout.contains("in the sender's queue"), "{outcome}");
}
