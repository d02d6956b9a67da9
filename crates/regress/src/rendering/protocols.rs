//! Checks as tests of other programs' protocols: a test for each cell and condition.

use crate::comparison::Comparison;
use crate::condition::Check;
use std::fmt::Write;

fn name(check: &Check) -> String {
    format!("{} {}", check.cell, check.condition)
}

/// KTAP, version 1 (the kernel's Documentation/dev-tools/ktap.rst).
pub(super) fn ktap(comparison: &Comparison) -> String {
    let Comparison { baseline, candidate, checks, .. } = comparison;
    let mut text = format!("KTAP version 1\n1..{}\n", checks.len());
    let _ = writeln!(text, "# baseline {}, candidate {}", baseline.name, candidate.name);
    let _ = writeln!(text, "# changed: {}", comparison.outcome.name());
    for (number, check) in checks.iter().enumerate() {
        let _ = writeln!(text, "# {} changed by {:+.1}", check.cell, check.change);
        let is_bad = if check.is_bad { "not ok" } else { "ok" };
        let _ = writeln!(text, "{is_bad} {} {}", number + 1, name(check));
    }
    text
}

/// JUnit's XML, as continuous integration reads it.
pub(super) fn junit(comparison: &Comparison) -> String {
    let Comparison { baseline, candidate, checks, .. } = comparison;
    let failures = checks.iter().filter(|check| check.is_bad).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"stacklab regress\" tests=\"{}\" failures=\"{failures}\">\n",
        checks.len()
    );
    for check in checks {
        let (cell, condition) = (escaped(&check.cell), escaped(&check.condition));
        let _ = write!(text, "  <testcase classname=\"{cell}\" name=\"{condition}\"");
        let message = format!("{:+.1} against {} in {}", check.change, baseline.name, candidate.name);
        let _ = match check.is_bad {
            true => writeln!(text, "><failure message=\"{}\"/></testcase>", escaped(&message)),
            false => writeln!(text, "/>"),
        };
    }
    text + "</testsuite>\n"
}

fn escaped(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.chars().map(plain).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::counted;
    use crate::condition::Condition;

    fn compared() -> Comparison {
        let baseline = counted("v1", [1000, 2000], [3000, 4000]);
        let conditions: Vec<Condition> = vec!["udp ipv6 > 8".parse().unwrap(), "gap > 1 %".parse().unwrap()];
        Comparison::new(&baseline, &counted("\"v2\"", [1000, 2500], [3000, 4000]), &conditions)
    }

    #[test]
    fn ktap_has_a_plan_and_a_line_for_each_check() {
        let text = ktap(&compared());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "KTAP version 1",
            "1..3",
            "not ok 1 udp/128 udp ipv6 > 8",
            "not ok 2 udp/128 gap > 1 %",
            "ok 3 tcp/128 gap > 1 %",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn junit_is_escaped_and_counts_failures() {
        let text = junit(&compared());
        assert!(text.contains("tests=\"3\" failures=\"2\""), "{text}");
        assert!(text.contains("<testcase classname=\"tcp/128\" name=\"gap &gt; 1 %\"/>"), "{text}");
        assert!(text.contains("<failure message=\"+25.0 against v1 in &quot;v2&quot;\"/>"), "{text}");
    }
}
