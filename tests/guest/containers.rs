//! Containers whose ports are published by their host or that send, and the proof of each run. The tests need root,
//! nft, docker-proxy, pasta and slirp4netns.

use crate::support::program::{
    Outcome, Program, children, code, count, invalid, require_root, require_tool, signal,
};
use crate::support::records::runs;
use crate::support::studies::TestStudy;
use stacklab_model::Factor;
use stacklab_store::Record;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

const WAYS: [&str; 6] = ["native", "dnat", "docker-proxy", "pasta", "slirp4netns", "macvlan"];

/// Messages of 1024 bytes over these ways, in both families.
fn compare_ways(title: &str, ways: &[&str], transports: &[&str]) -> TestStudy {
    TestStudy::new(title).topology("routed").mechanisms(ways).families().transports(transports).sizes(&[1024])
}

#[test]
fn each_way_to_a_container_carries_what_it_counts() {
    require_root();
    require_tool("docker-proxy", "docker.io");
    require_tool("pasta", "passt");
    require_tool("slirp4netns", "slirp4netns");
    let study = compare_ways("Ways to a container", &WAYS, &["tcp", "udp"])
        .stream(&["throughput", "path_mtu"])
        .time("100ms")
        .warmup("20ms")
        .echo(&["rtt"])
        .time("50ms")
        .schedule("sequential")
        .blocks(2);
    let program = Program::new();
    program.write("ways.toml", study.text());
    program.run(&["run", "ways.toml", "--out", "w.stacklab"]).expect(code::DONE);
    let path = program.work().join("w.stacklab");
    let all = runs(&path);
    // Two blocks of streams and echoes, of both transports and families.
    for way in WAYS {
        let of_way = all.iter().filter(|run| run.trial.cell.level(Factor::Mechanism) == way);
        assert_eq!(of_way.count(), 2 * 2 * 2 * 2, "{way}");
    }
    let seen = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    for part in [
        "dnat (nftables, stateful), seen on the middle link: ipv4 as ipv4 198.18.1.1 > 198.18.0.2 / udp",
        "ipv6 as ipv6 2001:2:0:1::1 > 2001:2:0:ffff::2 / udp",
        "ipv6 as ipv6 2001:2:0:ffff::1 > 2001:2:0:2::1 / udp",
        "ipv6 as ipv6 2001:2:0:1::1 > 2001:2:0:ffff::3 / udp",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
}

#[test]
fn connections_to_a_container_are_counted() {
    require_root();
    require_tool("slirp4netns", "slirp4netns");
    let ways = ["native", "dnat", "slirp4netns"];
    let study = compare_ways("Connections to a container", &ways, &["tcp"])
        .connect(&["connect_time"])
        .time("50ms")
        .schedule("sequential")
        .blocks(2);
    let program = Program::new();
    program.write("ways.toml", study.text());
    program.run(&["run", "ways.toml", "--out", "w.stacklab"]).expect(code::DONE);
    assert_eq!(runs(&program.work().join("w.stacklab")).len(), ways.len() * 2 * 2);
}

/// The helper is killed in the second block. The testbed is not built anew, so that the third cannot be measured.
#[test]
fn a_run_whose_helper_is_killed_is_invalid() {
    require_root();
    require_tool("slirp4netns", "slirp4netns");
    let study = compare_ways("A helper that is killed", &["slirp4netns"], &["tcp"])
        .set("testbed.rebuild", false)
        .family("ipv4")
        .stream(&["throughput"])
        .time("2s")
        .schedule("sequential")
        .blocks(3);
    let program = Program::new();
    program.write("ways.toml", study.text());
    let mut running = program.start(&["run", "ways.toml", "--out", "w.stacklab"]);
    running.wait_for("block 2/3", Duration::from_secs(30));
    sleep(Duration::from_millis(500));
    let of_way = children(running.pid()).into_iter().find(|pid| name_of(*pid) == "slirp4netns");
    signal(of_way.expect("it is a child of stacklab"), "KILL");
    let exited = "slirp4netns on router1 has exited (signal: 9 (SIGKILL))";
    running
        .end(Duration::from_secs(60))
        .expect(code::TESTBED)
        .says(&[&format!("stacklab: {exited}; results so far are kept. Resume with: stacklab run --resume")]);
    let record = program.work().join("w.stacklab");
    let reasons = invalid(&record);
    assert!(reasons.len() == 1 && reasons[0].contains(exited), "{reasons:?}");
    assert_eq!(count(&record, "status = 'valid'"), 1);
    program.run(&["run", "--resume", "--out", "w.stacklab"]).expect(code::DONE);
    assert_eq!(count(&record, "status = 'valid'"), 2);
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let program = Program::new();
    let study = compare_ways("A way without its program", &["native", "pasta"], &["tcp"])
        .stream(&["throughput"])
        .blocks(2);
    program.write("way.toml", study.text());
    let mut run = program.command(&["run", "way.toml"]);
    run.env("PATH", "/nonexistent");
    let refused = Outcome::of(run).expect(code::TESTBED).stderr;
    assert!(
        refused.contains("no program `pasta`") && refused.contains("install-recommends passt"),
        "{refused}"
    );
}
