//! Single values, defaults, and text that is not TOML.

use crate::parse::tests::{assert_mistakes, errors, study, with};
use stacklab_model::{Metric, Pacing, Probe};

#[test]
fn defaults_fill_what_is_left_out() {
    let text = with("[testbed]\nmtu = 1500\n", "").replace("size_of = [\"payload\"]\n", "");
    let study = study(&text.replace("[blocks]\nmin = 6\nmax = 12\n", ""));
    assert_eq!(
        (study.link_config.rate, study.link_config.mtu, study.link_config.offloads),
        (None, 1500, false)
    );
    assert_eq!((study.rule.min, study.rule.max, study.rule.target), (10, 40, 0.02));
    assert_eq!(study.rule.budget_ns, None);
    let stream = study.probe(Probe::Stream).unwrap();
    assert_eq!((stream.warmup_ns, stream.interval_ns), (50_000_000, 100_000_000));
    assert_eq!(stream.pacing, Pacing::Flood);
    assert_eq!(study.comparisons[0].metrics, [Metric::Throughput]);
    assert_eq!(study.comparisons[0].margin, 0.02);
    assert!(study.cells.iter().all(|cell| cell.replica.is_empty()));
    assert_eq!(study.probe(Probe::Echo), None);
}

#[test]
fn text_without_quotes_is_named_as_such() {
    for (value, said) in [
        ("tcp", "expected \"tcp\""),
        ("infinite", "expected \"infinite\""),
        ("True", "expected true"),
        ("yes no", "expected \"yes no\""),
        ("", "expected a value"),
    ] {
        let errors = errors(&format!("title = {value}\n"));
        assert_eq!(errors.count(), 1, "{errors}");
        assert!(errors.to_string().contains(said), "{errors}");
    }
}

#[test]
fn a_value_of_another_kind_is_named() {
    assert_mistakes(&[
        (with("\"A study\"", "\"\""), &["for `title`", "text in quotes, not empty"]),
        (with("mtu = 1500", "mtu = 1279"), &["for `testbed.mtu`", "a whole number from 1280 to 65535"]),
        (with("mtu = 1500", "mtu = 99999999999999999999999999999999999999999"), &["from 1280 to 65535"]),
        (with("mtu = 1500", "rate = \"1 GBps\""), &["for `testbed.rate`", "a rate such as"]),
        (with("mtu = 1500", "rate = 1000"), &["for `testbed.rate`", "a rate such as"]),
        (with("mtu = 1500", "offloads = \"no\""), &["for `testbed.offloads`", "true or false"]),
        (with("[testbed]\nmtu = 1500", "testbed = 3"), &["for `testbed`", "a table: [testbed]"]),
        (with("min = 6", "min = 1"), &["for `blocks.min`", "from 2 to 10000"]),
        (with("max = 12", "max = 10001"), &["for `blocks.max`", "from 2 to 10000"]),
        (with("max = 12", "max = 12\ntarget = 2"), &["for `blocks.target`", "a share above 0 and below 1"]),
        (with("max = 12", "max = 12\ntarget = nan"), &["for `blocks.target`", "a share above 0 and below 1"]),
        (
            with("max = 12", "max = 12\nbudget = \"10ms\""),
            &["for `blocks.budget`", "a duration from 1s to 720h"],
        ),
        (with("max = 12", "max = 12\nbudget = 2020-01-01"), &["for `blocks.budget`", "a duration such as"]),
    ]);
}
