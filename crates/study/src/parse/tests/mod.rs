//! Studies that are read, and mistakes that are named, by section of the study file.

mod arms;
mod comparisons;
mod connections;
mod containers;
mod diagnostics;
mod factors;
mod fuzz;
mod generators;
mod layers;
mod probes;
mod programs;
mod renamed;
mod search;
mod sizes;
mod testbed;
mod values;
mod wifi;

use crate::diagnostics::StudyErrors;
use crate::parse::{Input, parse};
use crate::study::Study;

const QUICKSTART: &str = include_str!("../../../../../studies/quickstart.toml");

const STUDY: &str = r#"title = "A study"
[testbed]
mtu = 1500
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size_of = ["payload"]
size = [128, 1408]
[probe.stream]
metrics = ["throughput"]
length = { time = "200ms" }
[blocks]
min = 6
max = 12
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
"#;

fn study(text: &str) -> Study {
    parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> StudyErrors {
    parse(&Input::file("study.toml", text)).expect_err("this study must be refused")
}

/// The example with one part replaced.
fn with(part: &str, by: &str) -> String {
    assert!(STUDY.contains(part), "{part}");
    STUDY.replace(part, by)
}

fn parse_with_settings(text: &str, scale: Option<&str>, settings: &[&str]) -> Result<Study, StudyErrors> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    parse(&Input { name: "study.toml", text, scale, settings: &settings })
}

/// A study between two routers, with these factors more.
fn write_routed_study(factors: &str) -> String {
    with("mtu = 1500", "topology = \"routed\"")
        .replace("size = [128, 1408]", &format!("size = [128]\n{factors}"))
}

/// Each text has one mistake, and all parts are said of it.
fn assert_mistakes(table: &[(String, &[&str])]) {
    for (text, said) in table {
        let errors = errors(text);
        assert_eq!(errors.count(), 1, "one mistake is one problem\n{errors}");
        let errors = errors.to_string();
        for part in *said {
            assert!(errors.contains(part), "{part:?} is not said of\n{text}\nbut\n{errors}");
        }
        assert!(errors.contains("--> study.toml:"), "{errors}");
    }
}
