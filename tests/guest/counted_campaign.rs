//! A campaign whose comparisons ask for instructions: a router's tables. The test needs root, QEMU with plugins, the
//! image linux-6.1 and nft.

use crate::support::program::{Outcome, Program, code, require_root, require_tool};
use stacklab_model::{ExactCell, ExactRow, Explanation, Factor, Family};
use stacklab_store::Record;

const STUDY: &str = r#"
title = "Instructions of a router's tables"
[testbed]
topology = "routed"
rebuild = false
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128]
routes = [0]
conntrack = ["off"]
[[include]]
routes = [20_000]
[[include]]
conntrack = [1000]
[[include]]
rules = [0, 100]
rule_form = ["list", "set"]
[probe.stream]
metrics = ["sender_cpu_per_message"]
length = { time = "20ms" }
warmup = "5ms"
[blocks]
min = 2
max = 2
[[comparison]]
factor = "routes"
baseline = 0
candidate = 20_000
instructions = true
[[comparison]]
factor = "conntrack"
baseline = "off"
candidate = 1000
instructions = true
[[comparison]]
factor = "rules"
baseline = 0
candidate = 100
instructions = true
"#;

const WITHOUT: &str = "instructions were not counted";

#[test]
fn a_campaign_counts_instructions_once() {
    require_root();
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    require_tool("nft", "nftables");
    let program = Program::new();
    program.write("counted.toml", STUDY);
    // Without the image the campaign is measured all the same.
    let mut command = program.command(&["run", "counted.toml", "--out", "r.stacklab"]);
    command.env("STACKLAB_CACHE", program.work().join("empty"));
    let measured = Outcome::of(command).expect(code::DONE);
    let measured = measured.says(&[WITHOUT, "stacklab image get linux-6.1", "--resume --out"]);
    assert!(measured.stdout.contains("instructions of 8 pairs of cells were not counted"), "{measured}");

    let counted = program.run(&["run", "--resume", "--out", "r.stacklab"]).expect(code::DONE);
    assert!(!counted.stderr.contains(WITHOUT) && !counted.stdout.contains(WITHOUT), "{counted}");
    let table = "Instructions, beside time and memory";
    assert!(counted.stdout.contains(table), "{counted}");
    let again = program.run(&["run", "--resume", "--out", "r.stacklab"]).expect(code::DONE);
    assert!(!again.stderr.contains("counting") && again.stdout.contains(table), "{again}");

    let all = Record::read(&program.work().join("r.stacklab")).unwrap().explanations().unwrap();
    assert_eq!(all.len(), 8, "each pair once");
    check_tables(&all);
}

fn check_tables(all: &[Explanation]) {
    for family in Family::ALL {
        let tracking = find(all, *family, Factor::Conntrack, "");
        let [off, on] = per_message(tracking, &tracking.functions, "nf_conntrack_in");
        assert!(off == 0.0 && on > 50.0, "{family}: {off} and {on} instructions to track");
        let routes = find(all, *family, Factor::Routes, "");
        let [few, many] = per_message(routes, &routes.stages, "route lookup");
        // In IPv4 a large table puts many levels into one array.
        let least = if *family == Family::Ipv6 { 50.0 } else { -50.0 };
        assert!(many > few + least, "{family}: {few} and {many} instructions to look up a route");
        let [list, set] = ["list", "set"].map(|form| find(all, *family, Factor::Rules, form));
        let [list, set] = [list, set].map(|cell| cell.difference(cell.total));
        println!("note: {family}: 100 rules take {list:.0} instructions as a list, and {set:.0} as a set");
        assert!(list > 100.0 * 30.0, "{family}: a list of 100 rules takes {list} instructions");
        assert!(set > 50.0 && set < 1500.0, "{family}: a set of 100 takes {set} instructions");
    }
}

/// The counts of a factor's pair, with the form of rules that both have.
fn find<'a>(all: &'a [Explanation], family: Family, factor: Factor, form: &str) -> &'a ExactCell {
    let found = all.iter().find(|one| {
        one.factor == factor && one.baseline.family == family && one.baseline.level(Factor::RuleForm) == form
    });
    &found.unwrap().exact.as_ref().unwrap().cells[0]
}

/// Instructions per message of both arms in a stage or function.
fn per_message(cell: &ExactCell, rows: &[ExactRow], name: &str) -> [f64; 2] {
    let row = rows.iter().find(|row| row.name == name);
    row.map_or([0, 0], |row| row.instructions).map(|count| cell.per_message(count))
}
