//! Firewall rules on a router: a list costs each packet time, a set or map hardly any. The test needs root and nft.

use crate::support::program::{Program, code, require_root, require_tool};
use crate::support::records::{figure, runs};
use crate::support::studies::TestStudy;
use stacklab_model::{Factor, Family, Metric, RunRecord};
use stacklab_store::Record;

fn study() -> TestStudy {
    TestStudy::new("Rules of a firewall")
        .topology("routed")
        .levels(Factor::Rules, [0, 10_000])
        .levels(Factor::RuleForm, ["list", "set", "map"])
        .families()
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["sender_cpu_per_message"])
        .time("200ms")
        .warmup("20ms")
        .blocks(3)
}

#[test]
fn a_list_of_rules_costs_what_a_set_does_not() {
    require_root();
    require_tool("nft", "nftables");
    let program = Program::new();
    program.write("rules.toml", study().text());
    program.run(&["run", "rules.toml", "--out", "r.stacklab"]).expect(code::DONE);
    let path = program.work().join("r.stacklab");
    let all = runs(&path);
    for family in Family::ALL {
        let without = take_least(&all, *family, ["0", "list"]);
        let list = take_least(&all, *family, ["10000", "list"]);
        let set = take_least(&all, *family, ["10000", "set"]);
        let map = take_least(&all, *family, ["10000", "map"]);
        println!("note: {family}: {without:.2}, {list:.2}, {set:.2} and {map:.2} ns a message");
        assert!(list > 3.0 * without, "{family}: {list} ns with a list, {without} ns without");
        assert!(list > 3.0 * set, "{family}: {list} ns with a list, {set} ns with a set");
        assert!(list > 3.0 * map, "{family}: {list} ns with a list, {map} ns with a map");
    }
    let description = Record::read(&path).unwrap().campaign().unwrap().testbed_description;
    for form in
        ["10000 firewall rules", "a firewall rule with a set of 10000", "a firewall rule with a map of 10000"]
    {
        assert!(description.contains(&format!("{form} on router1")), "{description}");
    }
}

/// The least of the runs with these levels of `rules` and `rule_form`, which other load disturbed least.
fn take_least(all: &[RunRecord], family: Family, [count, form]: [&str; 2]) -> f64 {
    let wanted = all.iter().filter(|run| {
        let cell = &run.trial.cell;
        cell.family == family && cell.level(Factor::Rules) == count && cell.level(Factor::RuleForm) == form
    });
    let figures = wanted.map(|run| figure(run, Metric::SenderCpuPerMessage));
    figures.reduce(f64::min).expect("each cell was measured")
}
