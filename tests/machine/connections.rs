//! New connections per second at a router of known rate. The test needs root.

use crate::support;

use stacklab_model::{ConnectionState, Factor, Metric, RunRecord, Value};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use support::program::{Outcome, Program, code, require_root};
use support::records::runs;
use support::studies::TestStudy;

/// New connections per second that the router's rule lets pass; known ones are not limited. A slice of 100 ms begins
/// with its whole burst, which is as long as the machine may keep the router waiting.
const LIMIT: f64 = 4000.0 + 100.0 / 0.1;
/// Stands in the place of `nft`, and adds to the rule that turns tracking on one that drops what is beyond the limit.
const WRAPPER: &str = "#!/bin/sh
nft=REAL
[ \"$1\" = -f ] || exec $nft \"$@\"
rules=$(cat)
case \"$rules\" in *stacklab_conntrack*) rules=\"$rules
add table inet truth
add chain inet truth relay { type filter hook forward priority filter; }
add rule inet truth relay ct state new limit rate over 4000/second burst 100 packets drop
\";; esac
printf '%s\\n' \"$rules\" | exec $nft -f -
";

fn find_nft() -> String {
    let found = Command::new("sh").args(["-c", "command -v nft"]).output().expect("sh is installed");
    let path = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    assert!(!path.is_empty(), "this test needs `nft`: scripts/setup test-all");
    path
}

/// Runs the study where `nft` adds the limit.
fn run_with_limit(program: &Program) -> Outcome {
    let folder = program.work().join("bin");
    fs::create_dir(&folder).unwrap();
    let wrapper = folder.join("nft");
    fs::write(&wrapper, WRAPPER.replace("REAL", &find_nft())).unwrap();
    fs::set_permissions(&wrapper, Permissions::from_mode(0o755)).unwrap();
    let mut command = program.command(&["run", "study.toml", "--out", "x.stacklab"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    Outcome::of(command)
}

/// Ten per cent may be lost, so the figure is the limit and up to a ninth more.
#[test]
fn only_new_connections_meet_their_limit() {
    require_root();
    let program = Program::new();
    let study = TestStudy::new("New connections at a rule that limits them")
        .topology("routed")
        .levels(Factor::Conntrack, [0])
        .family("ipv6")
        .transports(&["udp"])
        .sizes(&[64])
        .probe("search", &["connection_rate", "established_rate", "teardown_rate"])
        .set_of_probe("loss", "10 %")
        .set_of_probe("slice", "100ms")
        .set_of_probe("connections", 2048)
        .set_of_probe("highest", 12_000)
        .blocks(2);
    program.write("study.toml", study.text());
    run_with_limit(&program).expect(code::DONE);
    let runs = runs(&program.work().join("x.stacklab"));
    let mut found = 0;
    let mut torn_down = 0;
    for run in &runs {
        let figures = [Metric::ConnectionRate, Metric::EstablishedRate, Metric::TeardownRate]
            .map(|metric| run.values[&metric].clone());
        println!("note: the limit is {LIMIT:.0} new connections/s, found {figures:?}");
        if let Some(rate) = figures[0].measured() {
            found += 1;
            assert!((0.95 * LIMIT..1.02 * LIMIT / 0.9).contains(&rate), "{rate} new connections/s");
        }
        // On most machines known ones pass at the highest load, and then have a reason instead of a figure.
        match &figures[1] {
            Value::Measured(rate) => {
                assert!(*rate > 1.2 * LIMIT, "{rate} messages/s of known connections");
            }
            Value::Missing(reason) | Value::Invalid(reason) => {
                assert!(
                    reason.contains("at least 12000") || reason.contains("the tester disturbed"),
                    "{reason}"
                );
            }
        }
        if let Some(rate) = figures[2].measured() {
            torn_down += 1;
            assert!(rate > LIMIT, "{rate} connections/s are deleted");
        }
        assert_tables(run);
    }
    assert!(found > 0, "the tester disturbed all blocks");
    assert!(torn_down > 0, "no connections were deleted");
}

/// The kernel's counts say what each slice was.
fn assert_tables(run: &RunRecord) {
    let mut seen = [0, 0];
    for slice in &run.host_reports[0].search {
        let connections = slice.connections.expect("it searches connections alone");
        seen[usize::from(connections.state == ConnectionState::Established)] += 1;
        match connections.state {
            ConnectionState::New => {
                assert_eq!(connections.entries_before, 0, "{}: {slice:?}", run.trial);
                assert!((slice.received..=slice.offered).contains(&connections.entries), "{slice:?}");
            }
            ConnectionState::Established if !slice.is_bad() => {
                assert!(connections.entries >= connections.entries_before, "{slice:?}");
            }
            ConnectionState::Established => {}
        }
    }
    assert!(seen.iter().all(|slices| *slices > 5), "{}: {seen:?}", run.trial);
}
