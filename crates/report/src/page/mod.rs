//! A campaign as a web page: one document of everything that is shown, and the page around it.
//!
//! * [`PageSource`]: what a page is made from
//! * [`page`]: the document
//! * [`html`]: one file with page and document, which works offline

mod cells;
mod channel;
mod details;
mod document;
mod fleet;
mod forest;
mod html;
mod runs;
mod slices;
mod testbed;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
mod why;

pub(crate) use cells::AS_IT_IS;
pub use details::{Detailed, detail, tool_end};
pub use document::*;
pub use fleet::fleet_verdicts;
pub use html::{NoPage, SCRIPT, STYLE, html, shell};
pub use why::exact_page;

use crate::findings::{answer, groups, heading, notes};
use crate::page::cells::Index;
use stacklab_model::{
    Cell, Change, Findings, HostFacts, LimitedBy, LinkConfig, Links, Metric, RecordDiff, RunRecord,
    StopReason,
};

/// Longest headline of a list, letters.
const HEADLINE: usize = 300;

/// What a campaign says, in a line of a list.
pub fn headline(findings: &Findings) -> Headline {
    let answer = answer::answer(findings).unwrap_or_default();
    let is_long = answer.chars().count() > HEADLINE;
    let text = if is_long { format!("{}.", forest::answered(findings)) } else { answer };
    Headline { text, finished: is_finished(findings) }
}

fn is_finished(findings: &Findings) -> bool {
    findings.comparisons.iter().all(|comparison| comparison.stop_reason != StopReason::Unfinished)
}

/// Makes the document. The same source always gives the same one.
pub fn page(source: &PageSource) -> Page {
    let findings = source.findings;
    let index = Index::new(findings, source.runs);
    let groups = groups::groups(findings);
    let pairs = forest::Pairs::new(findings);
    let comparisons = verdicts::Numbered::new(&groups);
    Page {
        format: PAGE_FORMAT_VERSION,
        title: findings.title.clone(),
        answer: answer::answer(findings),
        facts: facts(heading::facts(findings)),
        legend: heading::LEGEND.to_owned(),
        finished: is_finished(findings),
        answered: forest::answered(findings),
        pairs: pairs.names(),
        forest: pairs.rows(findings, &index),
        why: why::views(&findings.explanations),
        sentences: comparisons.sentences(&groups, &pairs),
        matrix: comparisons.matrix(&groups, &pairs),
        notes: notes::points(findings),
        metrics: index.metrics(findings.cpu_scope),
        factors: index.factors(),
        cells: index.cells(),
        estimates: index.estimates(findings),
        comparisons: comparisons.views(&groups, &index),
        limits: index.limits(source.limits),
        limited_by: source.limited_by.to_string(),
        published: index.published(source.published),
        runs: runs::runs(source.runs, findings.started_unix_ns, &index),
        details: source.details.to_vec(),
        testbed: testbed::testbed(&findings.testbed_description, source),
    }
}

/// The page's content for the comparison of two records.
pub fn compared(found: &RecordDiff) -> Compared {
    Compared { headline: counts(found), blocks: crate::records::document(found) }
}

/// `B is better in 1 of 42 figures and worse in 2; 3 are equivalent, 36 are undecided.`
fn counts(found: &RecordDiff) -> String {
    let count = |change: Change| found.figures.iter().filter(|row| row.change == change).count();
    let [better, worse, alike] = [Change::Better, Change::Worse, Change::Equivalent].map(count);
    let all = found.figures.len();
    let open = all - better - worse - alike;
    format!(
        "B is better in {better} of {all} figures and worse in {worse}; {alike} are equivalent, {open} are undecided."
    )
}

pub(super) fn facts<N: Into<String>>(facts: impl IntoIterator<Item = (N, String)>) -> Vec<Fact> {
    facts.into_iter().map(|(name, text)| Fact { name: name.into(), text }).collect()
}

/// A figure with this many significant digits; `None` if it is not finite.
pub(super) fn rounded(figure: f64, digits: i32) -> Option<f64> {
    if figure == 0.0 {
        return Some(0.0);
    }
    if !figure.is_finite() {
        return None;
    }
    format!("{figure:.*e}", (digits - 1) as usize).parse().ok()
}

/// The input of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    /// The campaign's findings.
    pub findings: &'a Findings,
    /// The testbed.
    pub link_config: &'a LinkConfig,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// The kind of each host, in the same order.
    pub kinds: &'a [String],
    /// How they are connected.
    pub rows: &'a [TestbedDrawing],
    /// Every run.
    pub runs: &'a [RunRecord],
    /// The maximum that the testbed carries: cell, metric, and figure in the metric's unit.
    pub limits: &'a [(Cell, Metric, f64)],
    /// Which model has it.
    pub limited_by: LimitedBy,
    /// Figures of the published study that this one repeats.
    pub published: &'a [Published],
    /// The hosts' reports of some runs.
    pub details: &'a [RunDetail],
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The transport's name, if the figures are of one transport.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures in the unit that reports show.
    pub points: Vec<(f64, f64)>,
}

/// Hosts and the links between them, as drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestbedDrawing {
    /// Their names, in the order of the traffic.
    pub names: Vec<String>,
    /// How packets cross the middle link, if there is one.
    pub mechanisms: Vec<String>,
    /// The properties of each link, if there are three.
    pub links: Links,
    /// The properties of the radio channel that all hosts share, if there is one.
    pub channel: Vec<String>,
}
