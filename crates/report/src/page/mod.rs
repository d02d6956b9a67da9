//! A campaign as a web page: one document of everything that is shown, and the page around it.
//!
//! * [`PageSource`]: what a page is made from
//! * [`page`]: the document
//! * [`html`]: one file with page and document, which works offline

mod cells;
mod compared;
mod details;
mod document;
mod html;
mod place;
mod runs;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod types;
mod verdicts;

pub use compared::compared;
pub use details::{Detailed, detail};
pub use document::*;
pub use html::{NoPage, SCRIPT, STYLE, html, shell};

use crate::findings::{groups, heading, notes};
use cells::Index;
use stacklab_model::{Cell, Findings, HostFacts, LinkConfig, Links, Metric, RunRecord, StopReason};

/// What a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    /// What the campaign found.
    pub findings: &'a Findings,
    /// The testbed.
    pub link_config: &'a LinkConfig,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// What kind each of them is, in the same order.
    pub kinds: &'a [String],
    /// How they are joined.
    pub rows: &'a [Row],
    /// Every run.
    pub runs: &'a [RunRecord],
    /// The most that the link carries: cell, metric, and figure in the metric's unit.
    pub limits: &'a [(Cell, Metric, f64)],
    /// Figures of the published study that this one repeats.
    pub published: &'a [Published],
    /// What the hosts saw of some runs.
    pub details: &'a [RunDetail],
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The transport's name, where the figures are of one.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures in the unit that reports show.
    pub points: Vec<(f64, f64)>,
}

/// Hosts that are joined in a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Their names, in the order of the traffic.
    pub names: Vec<String>,
    /// How packets cross the middle link, where there is one.
    pub mechanisms: Vec<String>,
    /// What the links have for themselves, where there are three.
    pub links: Links,
}

/// Makes the document. The same source always gives the same one.
pub fn page(source: &PageSource) -> Page {
    let findings = source.findings;
    let index = Index::new(findings, source.runs);
    let groups = groups::groups(findings);
    let comparisons = verdicts::Numbered::new(&groups);
    Page {
        format: PAGE_FORMAT_VERSION,
        title: findings.title.clone(),
        facts: facts(heading::facts(findings)),
        legend: heading::LEGEND.to_owned(),
        finished: findings
            .comparisons
            .iter()
            .all(|comparison| comparison.stop_reason != StopReason::Unfinished),
        sentences: comparisons.sentences(&groups),
        matrix: comparisons.matrix(&groups),
        notes: notes::points(findings),
        metrics: index.metrics(findings.cpu_scope),
        factors: index.factors(),
        cells: index.cells(),
        estimates: index.estimates(findings),
        comparisons: comparisons.views(&groups, &index),
        limits: index.limits(source.limits),
        published: index.published(source.published),
        runs: runs::runs(source.runs, findings.started_unix_ns, &index),
        details: source.details.to_vec(),
        testbed: place::testbed(&findings.testbed_description, source),
    }
}

fn facts<N: Into<String>>(facts: impl IntoIterator<Item = (N, String)>) -> Vec<Fact> {
    facts.into_iter().map(|(name, text)| Fact { name: name.into(), text }).collect()
}

/// So many significant digits; a figure that is not finite is none.
fn rounded(figure: f64, digits: i32) -> Option<f64> {
    if figure == 0.0 {
        return Some(0.0);
    }
    if !figure.is_finite() {
        return None;
    }
    format!("{figure:.*e}", (digits - 1) as usize).parse().ok()
}
