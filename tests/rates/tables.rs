//! Large tables of a router: both families are carried with them, and nothing of them is left. The test needs root and
//! nft.

use crate::support::program::{Program, code, require_root, require_tool};
use crate::support::records::{figure, runs};
use crate::support::studies::TestStudy;
use stacklab_model::{Factor, Family, Metric, RunRecord};
use stacklab_store::Record;
use stacklab_study::builder::level;
use std::fs;

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
