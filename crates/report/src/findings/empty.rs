//! Imported records without the metrics of which no run has a figure: their files do not state them.

use stacklab_model::{Findings, Metric, Transport};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The findings that are shown. A campaign that was measured is whole: its study asked for each metric, and reports
/// state why one has no figure.
pub(crate) fn without_empty(findings: &Findings) -> Cow<'_, Findings> {
    if !findings.is_import() {
        return Cow::Borrowed(findings);
    }
    let has_figure: BTreeSet<(Metric, Transport)> = findings
        .cells
        .iter()
        .filter(|one| one.estimate.n > 0)
        .map(|one| (one.metric, one.cell.transport))
        .collect();
    let mut shown = findings.clone();
    shown.cells.retain(|one| has_figure.contains(&(one.metric, one.cell.transport)));
    shown.comparisons.retain(|one| {
        let question = &one.question;
        question.cells().iter().any(|cell| has_figure.contains(&(question.metric, cell.transport)))
    });
    shown.overall.retain(|one| {
        has_figure.iter().any(|(metric, transport)| {
            *metric == one.metric && one.transport.is_none_or(|of| of == *transport)
        })
    });
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::answer::answer;
    use crate::tests::fixtures::{findings, no_estimate};
    use crate::{OutputFormat, WIDTH, render};
    use stacklab_model::{Factor, Headline, Verdict};

    fn headline(metric: Metric, transport: Transport) -> Headline {
        Headline {
            factor: Factor::Family,
            baseline: "ipv4".into(),
            candidate: "ipv6".into(),
            metric,
            transport: Some(transport),
            comparisons: 1,
            answered: 0,
            effect: None,
            range: None,
            unpaired: None,
            claimed_range: None,
            verdict: Verdict::Nothing("not recorded".into()),
            margin: 0.02,
        }
    }

    /// Tests of another tool: throughput over TCP, and no figure of any other metric.
    fn imported() -> Findings {
        let mut found = findings();
        found.testbed_description = "imported, not measured by this program: iperf3 3.18".to_owned();
        for one in found.cells.iter_mut().filter(|one| one.metric != Metric::Throughput) {
            one.estimate = no_estimate("not recorded");
        }
        found.overall =
            vec![headline(Metric::Throughput, Transport::Tcp), headline(Metric::Rtt, Transport::Udp)];
        found
    }

    #[test]
    fn metric_without_a_figure_has_no_table() {
        let found = imported();
        let text = render(&found, OutputFormat::Text, WIDTH);
        assert!(text.contains("throughput, TCP") && !text.contains("RTT, UDP"), "{text}");
        assert!(!answer(&without_empty(&found)).unwrap().contains("RTT"));
        let measured = Findings { testbed_description: "two namespaces".to_owned(), ..found };
        assert!(render(&measured, OutputFormat::Text, WIDTH).contains("RTT, UDP"));
    }
}
