//! Containers whose ports are published by their host or that send, and the proof of each run. The tests need root,
//! nft, docker-proxy, pasta and slirp4netns.

use crate::support::program::{Outcome, Program, code, require_root, require_tool};
use crate::support::records::runs;
use crate::support::studies::TestStudy;
use stacklab_model::Factor;
use stacklab_store::Record;

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
