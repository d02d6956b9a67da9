//! What an agent that runs as root does with its privileges at a coordinator's word.

use crate::support;

use serde_json::Value;
use std::fs;
use support::listening::Listening;
use support::program::{code, require_root};

/// The receive buffer that the agent's socket had after this much was asked for, bytes.
fn buffer(there: &Listening, asked: u64) -> u64 {
    let asked = asked.to_string();
    let words = ["tcp", "127.0.0.1", "-n", "10", "-w", &asked, "--json"];
    let outcome = there.measure(&words).expect(code::DONE);
    let run: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    let receiver = run["sides"].as_array().unwrap().iter().find(|side| side["role"] == "receiver").unwrap();
    let found = &receiver["endpoint"]["options"]["receive_buffer"];
    found.as_u64().unwrap_or_else(|| panic!("no receive buffer: {receiver}"))
}

#[test]
fn a_coordinator_gets_no_larger_socket_buffer_than_any_user_unless_the_operator_allows_it() {
    require_root();
    let most = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    let most: u64 = most.trim().parse().unwrap();
    let asked = 2 * most;
    assert!(asked <= 16 << 20, "this machine lets every user have {most} bytes");
    // The kernel doubles what was set.
    let there = Listening::start("", &[]);
    assert_eq!(buffer(&there, asked), 2 * most);
    let there = Listening::start("", &["--allow", "tuning"]);
    assert_eq!(buffer(&there, asked), 2 * asked);
}
