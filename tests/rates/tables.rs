//! Large tables of a router: both families are carried with them, and nothing of them is left. The test needs root.

use crate::support::program::{Program, code, require_root};
use crate::support::records::{figure, runs};
use stacklab_model::{Factor, Family, Metric};
use stacklab_store::Record;
use std::fs;

const STUDY: &str = r#"title = "A large table of routes"
[testbed]
topology = "routed"
[factors]
routes = [0, 50_000]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128]
[probe.stream]
metrics = ["sender_cpu_per_message"]
length = { time = "100ms" }
warmup = "20ms"
[blocks]
min = 2
max = 2
"#;

#[test]
fn packets_pass_a_table_of_many_routes() {
    require_root();
    let own_tables = read_own_tables();
    let program = Program::new();
    program.write("tables.toml", STUDY);
    program.run(&["run", "tables.toml", "--out", "r.stacklab"]).expect(code::DONE);
    let path = program.work().join("r.stacklab");
    for family in Family::ALL {
        for routes in ["0", "50000"] {
            let all = runs(&path);
            let of_cell = all.iter().filter(|run| {
                let cell = &run.trial.cell;
                cell.family == *family && cell.level(Factor::Routes) == routes
            });
            let figures: Vec<f64> = of_cell.map(|run| figure(run, Metric::SenderCpuPerMessage)).collect();
            assert_eq!(figures.len(), 2, "{family} with {routes} routes");
            println!("note: {family} with {routes} routes: {figures:?} ns a message");
        }
    }
    let description = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    assert!(description.contains(", 50000 more routes of each family on router1"), "{description}");
    assert_eq!(read_own_tables(), own_tables, "this machine's own tables are as before");
}

/// The numbers of this machine's own routes.
fn read_own_tables() -> [String; 2] {
    ["fib_triestat", "rt6_stats"].map(|file| fs::read_to_string(format!("/proc/self/net/{file}")).unwrap())
}
