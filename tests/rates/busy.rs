//! A machine whose processors others have, and what is not other load. The tests need root.

use crate::support;

use stacklab_model::{Family, RunRecord};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::iperf3::Hosts;
use support::program::{Running, code};
use support::records::runs;

/// Programs that compute without end, more than there are processors.
const COMPUTING: usize = 6;
const SOON: Duration = Duration::from_secs(10);

/// Two hosts in their own network namespaces, with an agent on the second one.
fn hosts_with_agent() -> (Hosts, Running) {
    let hosts = Hosts::new();
    let mut agent = hosts.program.started(hosts.command(1, "\"$STACKLAB\" agent --listen"));
    agent.wait_for("measures to it", SOON);
    (hosts, agent)
}

fn other_load(run: &RunRecord) -> Vec<&str> {
    let warnings = run.warnings.iter().filter(|warning| warning.code == "other_load");
    warnings.map(|warning| warning.text.as_str()).collect()
}

#[test]
fn agent_in_another_namespace_is_no_other_load() {
    let (hosts, agent) = hosts_with_agent();
    let to = hosts.address(1, Family::Ipv4) + "," + &hosts.address(1, Family::Ipv6);
    let name = "record.stacklab";
    for probe in ["tcp", "echo"] {
        let record = hosts.program.work().join(name);
        let line = format!("\"$STACKLAB\" measure {probe} {to} --against ipv4 -t 1 --out {name}");
        hosts.run(0, &line).expect(code::DONE);
        let runs = runs(&record);
        assert!(!runs.is_empty());
        // Tests see their own processes only: another stacklab than the agent is not among them.
        for text in runs.iter().flat_map(other_load) {
            assert!(!text.contains("stacklab used"), "agent {}: {text}", agent.pid());
        }
        std::fs::remove_file(record).unwrap();
    }
}

#[test]
fn a_late_sender_is_not_a_slow_path() {
    let (hosts, _agent) = hosts_with_agent();
    let to = hosts.address(1, Family::Ipv4) + "," + &hosts.address(1, Family::Ipv6);
    let mut computing = Vec::new();
    for _ in 0..COMPUTING {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        computing.push(shell.spawn().unwrap());
    }
    let outcome = hosts.run(0, &format!("\"$STACKLAB\" measure udp {to} -b 50M --against ipv4 -t 3"));
    for mut shell in computing {
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
    let outcome = outcome.expect(code::DONE);
    assert!(!outcome.stderr.contains("the path is slow"), "{outcome}");
    assert!(outcome.stdout.contains("after their schedule"), "the sender was late: {outcome}");
}
