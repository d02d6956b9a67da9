//! What an agent that runs as root does with its privileges at a coordinator's word.

use crate::support;

use serde_json::Value;
use std::fs;
use support::listening::Listening;
use support::program::{code, require_root};

/// The buffer by which the agent's socket sends or receives after this much was asked for, bytes.
fn buffer(there: &Listening, role: &str, asked: u64) -> u64 {
    let asked = asked.to_string();
    let mut words = vec!["tcp", "127.0.0.1", "-n", "10", "-w", &asked, "--json"];
    if role == "sender" {
        words.push("-R");
    }
    let outcome = there.measure(&words).expect(code::DONE);
    let run: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    let side = run["ends"].as_array().unwrap().iter().find(|side| side["role"] == role).unwrap();
    let name = if role == "sender" { "send_buffer" } else { "receive_buffer" };
    let found = &side["endpoint"]["options"][name];
    found.as_u64().unwrap_or_else(|| panic!("no {name}: {side}"))
}

#[test]
fn a_coordinators_buffers_are_those_of_any_user() {
    require_root();
    let strict = Listening::start("", &[]);
    let free = Listening::start("", &["--allow", "tuning"]);
    for (role, limit) in [("receiver", "rmem_max"), ("sender", "wmem_max")] {
        let most = fs::read_to_string(format!("/proc/sys/net/core/{limit}")).unwrap();
        let most: u64 = most.trim().parse().unwrap();
        // A machine may be set up for long paths: then any user gets the largest buffer that may be asked for.
        let asked = (2 * most).min(16 << 20);
        // The kernel doubles what was set.
        assert_eq!(buffer(&strict, role, asked), 2 * asked.min(most), "{role}");
        assert_eq!(buffer(&free, role, asked), 2 * asked, "{role}");
    }
}
