//! Large tables of a router: both families are carried with them, also to many destinations, and nothing of them is
//! left. The tests need root, nft and tcpdump.

use crate::support::capture::{Capture, find_host};
use crate::support::program::{Program, code, require_root, require_tool};
use crate::support::records::{figure, runs, side};
use crate::support::studies::TestStudy;
use stacklab_model::{Factor, Family, Metric, Role, RunRecord, list_destinations};
use stacklab_store::Record;
use stacklab_study::builder::level;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::IpAddr;
use std::time::Duration;

fn study() -> TestStudy {
    TestStudy::new("Large tables of a router")
        .topology("routed")
        .levels(Factor::Routes, [0, 50_000])
        .levels(Factor::Conntrack, ["off", "0", "1000"].map(level))
        .families()
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["sender_cpu_per_message", "memory_per_route"])
        .time("100ms")
        .warmup("20ms")
        .blocks(2)
}

#[test]
fn packets_pass_a_router_with_large_tables() {
    require_root();
    require_tool("nft", "nftables");
    let own_tables = read_own_tables();
    let program = Program::new();
    program.write("tables.toml", study().text());
    program.run(&["run", "tables.toml", "--out", "r.stacklab"]).expect(code::DONE);
    let path = program.work().join("r.stacklab");
    let all = runs(&path);
    for family in Family::ALL {
        for routes in ["0", "50000"] {
            for connections in ["off", "0", "1000"] {
                let figures = list_figures(&all, *family, routes, connections);
                assert_eq!(figures.len(), 2, "{family}, {routes} routes, conntrack {connections}");
                println!(
                    "note: {family}, {routes} routes, conntrack {connections}: {figures:?} ns a message"
                );
            }
        }
    }
    check_memory(&all);
    let description = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    for part in [
        ", 50000 more routes of each family on router1",
        ", connections tracked on router1,",
        ", connections tracked on router1 among 1000 more of each family",
    ] {
        assert!(description.contains(part), "{description}");
    }
    assert_eq!(read_own_tables(), own_tables, "this machine's own tables are as before");
}

/// As many as routes, and as neighbours of the second router: nothing arrives without them.
const DESTINATIONS: u32 = 100;

/// Enough that each destination is drawn.
const MESSAGES: u32 = 2000;

fn spread_study() -> TestStudy {
    TestStudy::new("A stream to many destinations")
        .topology("routed")
        .set("testbed.rebuild", false)
        .levels(Factor::Routes, [DESTINATIONS])
        .levels(Factor::Destinations, [DESTINATIONS])
        .levels(Factor::Neighbours, [DESTINATIONS])
        .families()
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["throughput", "loss"])
        .packets(MESSAGES)
        .set_of_probe("message_rate", 5000)
        .warmup("0s")
        .schedule("sequential")
        .blocks(4)
}

#[test]
fn a_stream_takes_all_routes_to_its_destinations() {
    require_root();
    let program = Program::new();
    program.write("spread.toml", spread_study().text());
    let mut running = program.start(&["run", "spread.toml", "--out", "r.stacklab"]);
    let pid = running.pid();
    let receiver = find_host(pid, "20010002000000020000000000000001", || {
        assert!(running.is_running(), "{}", running.stderr());
    });
    // The namespace stays as long as it is open here.
    let _namespace = File::open(format!("/proc/{receiver}/ns/net")).unwrap();
    let capture = Capture::start(receiver, "st0", &program.tmp());
    running.end(Duration::from_secs(120)).expect(code::DONE);
    let packets = capture.stop();
    let all = runs(&program.work().join("r.stacklab"));
    for family in Family::ALL {
        let expected: BTreeSet<IpAddr> = list_destinations(*family, DESTINATIONS).into_iter().collect();
        let of_family = all.iter().filter(|run| run.trial.cell.family == *family);
        let last = of_family.max_by_key(|run| run.started_unix_ns).unwrap();
        let receiver = side(last, Role::Receiver);
        let mut found = BTreeSet::new();
        for packet in &packets {
            let is_stream = packet.destination.port() == receiver.endpoint.local.port();
            if is_stream
                && packet.family == *family
                && packet.destination.ip() != receiver.endpoint.local.ip()
            {
                found.insert(packet.destination.ip());
            }
        }
        assert_eq!(found, expected, "{family}");
        assert_eq!(receiver.received.measured, u64::from(MESSAGES), "{family}");
    }
}

/// A route of IPv6 takes several times what one of IPv4 does: about 770 and 150 bytes on Linux 6.18.
fn check_memory(all: &[RunRecord]) {
    let mut found = [Vec::new(), Vec::new()];
    for run in all.iter().filter(|run| run.trial.cell.level(Factor::Routes) == "50000") {
        let family = usize::from(run.trial.cell.family == Family::Ipv6);
        found[family].push(figure(run, Metric::MemoryPerRoute));
    }
    for figures in &mut found {
        figures.sort_by(f64::total_cmp);
    }
    let [ipv4, ipv6] = found.map(|figures| figures[figures.len() / 2]);
    println!("note: {ipv4:.0} and {ipv6:.0} bytes for each route");
    assert!((60.0..500.0).contains(&ipv4), "{ipv4} bytes for each route of IPv4");
    assert!((2.0 * ipv4..2000.0).contains(&ipv6), "{ipv6} bytes for each route of IPv6, IPv4 {ipv4}");
    assert!(all.iter().all(|run| {
        run.trial.cell.level(Factor::Routes) != "0"
            || run.values[&Metric::MemoryPerRoute].measured().is_none()
    }));
}

/// The sender's CPU time per message of the runs with these levels, nanoseconds.
fn list_figures(all: &[RunRecord], family: Family, routes: &str, connections: &str) -> Vec<f64> {
    let of_cell = all.iter().filter(|run| {
        let cell = &run.trial.cell;
        let levels = [cell.level(Factor::Routes), cell.level(Factor::Conntrack)];
        cell.family == family && levels == [routes, connections]
    });
    of_cell.map(|run| figure(run, Metric::SenderCpuPerMessage)).collect()
}

/// The numbers of this machine's own routes.
fn read_own_tables() -> [String; 2] {
    ["fib_triestat", "rt6_stats"].map(|file| fs::read_to_string(format!("/proc/self/net/{file}")).unwrap())
}
