//! `[[program]]` and `probe.program`.

use crate::CountWay;
use crate::parse::tests::{assert_mistakes, study};
use crate::plan::Plan;
use stacklab_model::{Factor, Length, Probe, Transport};

const TWO: &str = r#"
title = "Two servers"
[[program]]
name = "one"
server = "one {host} {port}"
client = "get {url_host}"
[[program]]
name = "other"
server = "other {host} {port}"
client = "get {url_host}"
transport = "udp"
port = 4433
limit = "5s"
[factors]
family = ["ipv4", "ipv6"]
[probe.program]
metrics = ["duration"]
time = "2s"
[[comparison]]
factor = "program"
baseline = "one"
candidate = "other"
"#;

#[test]
fn all_programs_are_measured_unless_some_are_named() {
    let read = study(TWO);
    let labels: Vec<String> = read.cells.iter().map(|cell| cell.label()).collect();
    assert_eq!(labels, ["IPv4 one", "IPv4 other", "IPv6 one", "IPv6 other"]);
    assert!(read.schedule.is_alone());
    assert_eq!(read.questions().len(), 2);
    assert_eq!(Plan::new(&read, 1).block(0).len(), 4);
    assert_eq!(read.probe(Probe::Program).unwrap().length, Length::Time(2_000_000_000));
    let other = read.program_of(&read.cells[1]).unwrap();
    assert_eq!((other.transport, other.port, other.limit_ns), (Transport::Udp, 4433, 5_000_000_000));
    let one = read.program_of(&read.cells[0]).unwrap();
    assert_eq!((one.transport, one.port, one.limit_ns), (Transport::Tcp, 7000, 60_000_000_000));
    let [comparisons, first] = [TWO.find("[[comparison]]").unwrap(), TWO.find("[probe").unwrap()];
    let named = TWO[..comparisons].replace("[probe", "program = [\"other\"]\n[probe");
    assert!(first < comparisons);
    assert_eq!(study(&named).cells.len(), 2);
    assert_eq!(study(&named).cells[0].level(Factor::Program), "other");
}

#[test]
fn instructions_of_programs_are_of_requests() {
    let counted = TWO.replace("get {url_host}", "get {url_host} {requests}") + "instructions = true\n";
    let pairs = study(&counted).list_counted_pairs();
    assert_eq!(pairs.len(), 2);
    assert!(pairs.iter().all(|pair| pair.way == Ok(CountWay::Requests)), "{pairs:?}");
    let needs = TWO.replace("port = 4433", "needs = [\"a\", \"b\"]\nversion = \"b -V\"");
    let other = &study(&needs).programs[1];
    assert_eq!(
        (&other.needs, other.version.as_deref()),
        (&vec!["a".to_owned(), "b".to_owned()], Some("b -V"))
    );
}

#[test]
fn programs_that_are_not_measured_need_no_requests() {
    let compared = TWO.find("[[comparison]]").unwrap();
    let families = "[[comparison]]\nfactor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"\n";
    let of_families = format!("{}{families}instructions = true\n", &TWO[..compared]);
    assert_mistakes(&[(of_families.clone(), &["the client of `one` does not take a number of requests"])]);
    let alone = of_families.replace("[probe", "program = [\"other\"]\n[probe");
    assert_mistakes(&[(alone.clone(), &["the client of `other` does not take a number of requests"])]);
    let taken =
        alone.replacen("client = \"get {url_host}\"\ntransport", "client = \"get {requests}\"\ntransport", 1);
    assert_eq!(study(&taken).list_counted_pairs().len(), 1);
}

#[test]
fn counting_takes_the_time_of_counted_cells() {
    let third = "[[program]]\nname = \"third\"\nserver = \"a\"\nclient = \"b\"\n[factors]";
    let counted = TWO.replace("get {url_host}", "get {url_host} {requests}") + "instructions = true\n";
    let text = counted.replace("[factors]", third);
    for (text, cells) in [(&counted, 4), (&text, 6)] {
        let read = study(text);
        assert_eq!(read.cells.len(), cells);
        let plan = Plan::new(&read, 1).describe(&read);
        // Both programs over both families, 18 s each.
        assert!(
            plan.contains("instructions of 2 pairs of cells, after the last block: about 1 min 12 s"),
            "{plan}"
        );
    }
}

fn with(what: &str, instead: &str) -> String {
    TWO.replacen(what, instead, 1)
}

#[test]
fn what_programs_do_not_have_is_said_at_its_place() {
    assert_mistakes(&[
        (
            with("\"one {host}", "\"one {hots}"),
            &["there is no placeholder `{hots}`", "did you mean `{host}`"],
        ),
        (
            with("[factors]", "[[program]]\nname = \"one\"\nserver = \"a\"\nclient = \"b\"\n[factors]"),
            &["there are two programs `one`"],
        ),
        (
            with("[probe.", "transport = [\"udp\"]\n[probe."),
            &["has no factor `transport`", "the programs' own"],
        ),
        (with("[probe.", "size = [64]\n[probe."), &["has no factor `size`"]),
        (with("[probe.", "[[include]]\ntransport = [\"udp\"]\n[probe."), &["has no factor `transport`"]),
        (with("[probe.", "services = [\"dns\"]\n[probe."), &["`services` cannot be set for programs"]),
        (
            with("[factors]", "[[program]]\nname = \"a, b\"\nserver = \"a\"\nclient = \"b\"\n[factors]"),
            &["this cannot be the name of a program"],
        ),
        (with("[probe.", "flows = [2]\n[probe."), &["`flows` cannot be set for programs"]),
        (with("[probe.", "os = [\"gvisor\"]\n[probe."), &["a program cannot run in gvisor"]),
        (
            with("[probe.", "program = [\"one\", \"other\", \"none\"]\n[probe."),
            &["there is no [[program]] `none`", "one, other"],
        ),
        (
            with("[probe.", "[probe.echo]\nmetrics = [\"rtt\"]\n[probe."),
            &["programs are measured by probe.program alone"],
        ),
        (with("[factors]", "[testbed]\ntopology = \"wifi\"\n[factors]"), &["a program cannot run on Wi-Fi"]),
        (
            with("[factors]", "[testbed]\ntopology = \"routed\"\n[factors]\nmechanism = [\"dnat\"]"),
            &["`dnat` carries the traffic of stacklab alone"],
        ),
        (with("port = 4433", "port = 70000"), &["program.port", "65535"]),
        (TWO.replace("\"one\"", "\"ipv6\""), &["`ipv6` is a level of `family`, too"]),
        (
            TWO.replace("\"one\"", "\"1400\"").replace("[probe.", "mtu = [1400]\n[probe."),
            &["`1400` is a level of `mtu`, too"],
        ),
        (with("port = 4433", "needs = []"), &["program.needs"]),
        (
            format!("{TWO}instructions = true\n"),
            &["the client of `one` does not take a number of requests", "write {requests}"],
        ),
        (with("server = \"one {host} {port}\"", ""), &["`program.server` is missing"]),
    ]);
    let without = TWO[TWO.find("[factors]").unwrap()..TWO.find("[[comparison]]").unwrap()]
        .replace("[probe.", "transport = [\"tcp\"]\nsize = [64]\n[probe.");
    assert_mistakes(&[(format!("title = \"None\"\n{without}"), &["probe program needs programs"])]);
}
