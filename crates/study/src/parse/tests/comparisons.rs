//! `[[comparison]]`.

use crate::parse::tests::{STUDY, assert_mistakes, study, with};

#[test]
fn settings_are_compared_by_text_number_and_truth() {
    let levels =
        "size = [128, 1408]\nio = [\"send\", \"sendmmsg\"]\nmtu = [1500, 9000]\nnodelay = [true, false]";
    for (factor, baseline, candidate, read) in [
        ("nodelay", "false", "true", ["false", "true"]),
        ("mtu", "1500", "\"9000\"", ["1500", "9000"]),
        ("io", "\"send\"", "\"sendmmsg\"", ["send", "sendmmsg"]),
    ] {
        let text = with("size = [128, 1408]", levels)
            .replace("\"tcp\", \"udp\"", "\"tcp\"")
            .replace("factor = \"family\"", &format!("factor = \"{factor}\""))
            .replace("baseline = \"ipv4\"", &format!("baseline = {baseline}"))
            .replace("candidate = \"ipv6\"", &format!("candidate = {candidate}"));
        let study = study(&text);
        let questions = study.questions();
        // One metric, and half of all cells are at the baseline.
        assert_eq!(questions.len(), study.cells.len() / 2);
        for question in &questions {
            assert!(question.baseline.same_but(&question.candidate, question.factor));
            assert!(study.cells.contains(&question.candidate), "{}", question.candidate);
        }
        assert_eq!(questions[0].cells().map(|cell| cell.level(questions[0].factor)), read);
    }
}

#[test]
fn a_mistake_in_a_comparison_is_named() {
    assert_mistakes(&[
        (with("factor = \"family\"\n", ""), &["`comparison.factor` is missing"]),
        (with("factor = \"family\"", "factor = \"famly\""), &["no factor `famly`", "did you mean `family`?"]),
        (
            with("= \"ipv6\"", "= \"ipv5\""),
            &["`ipv5` is not a level of factor family", "did you mean `ipv4`?"],
        ),
        (with("= \"ipv6\"", "= \"ipv4\""), &["baseline and candidate are both `ipv4`", "factor replica"]),
        (
            with("factor = \"family\"", "factor = \"replica\""),
            &["no factor `replica`", "replica = [\"a\", \"b\"]"],
        ),
        (
            with("= \"ipv6\"", "= \"ipv6\"\nmargin = \"100 %\""),
            &["for `comparison.margin`", "a share above 0"],
        ),
        (with("= \"ipv6\"", "= \"ipv6\"\nmetrics = []"), &["for `comparison.metrics`", "at least one item"]),
        (with("= \"ipv6\"", "= \"ipv6\"\nmetrics = [\"rtt\"]"), &["does not measure `rtt`", "[probe.echo]"]),
        (with("[[comparison]]", "[comparison]"), &["for `comparison`", "[[comparison]]"]),
        (
            format!(
                "{STUDY}[[comparison]]\nfactor = \"family\"\nbaseline = \"ipv6\"\ncandidate = \"ipv4\"\n"
            ),
            &["duplicates another one", "first here"],
        ),
        (
            with("factor = \"family\"", "factor = \"mtu\""),
            &["no factor `mtu`", "mtu = [1500, 9000] to [factors]"],
        ),
        (
            with("= \"ipv6\"", "= \"ipv6\"\ninstructions = true")
                .replace(
                    "[probe.stream]\nmetrics = [\"throughput\"]",
                    "[probe.connect]\nmetrics = [\"connect_time\"]",
                )
                .replace("[\"tcp\", \"udp\"]", "[\"tcp\"]"),
            &[
                "instructions are counted of streams, of echoes and of programs",
                "add [probe.stream] or [probe.echo]",
            ],
        ),
        // Its level is wrong, and that alone is said.
        (
            with("factor = \"family\"", "factor = \"io\"")
                .replace("[factors]", "[factors]\nio = [\"sendd\"]"),
            &["`sendd`", "did you mean `send`?"],
        ),
    ]);
}
