//! A campaign as a web page: one document of everything that is shown, and the page around it.
//!
//! * [`PageSource`]: what a page is made from
//! * [`page`]: the document
//! * [`html`]: one file with page and document, which works offline

mod cells;
mod channel;
mod compared;
mod details;
mod document;
mod forest;
mod html;
mod rounding;
mod runs;
mod slices;
mod source;
mod testbed;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod types;
mod verdicts;
mod why;

pub use compared::compared;
pub use details::{Detailed, detail};
pub use document::*;
pub use html::{NoPage, SCRIPT, STYLE, html, shell};
pub use source::{PageSource, Published, TestbedDrawing};

use crate::findings::{answer, groups, heading, notes};
use crate::page::cells::Index;
use crate::page::rounding::facts;
use stacklab_model::StopReason;

/// Makes the document. The same source always gives the same one.
pub fn page(source: &PageSource) -> Page {
    let findings = source.findings;
    let index = Index::new(findings, source.runs);
    let groups = groups::groups(findings);
    let comparisons = verdicts::Numbered::new(&groups);
    Page {
        format: PAGE_FORMAT_VERSION,
        title: findings.title.clone(),
        answer: answer::answer(findings),
        facts: facts(heading::facts(findings)),
        legend: heading::LEGEND.to_owned(),
        finished: findings
            .comparisons
            .iter()
            .all(|comparison| comparison.stop_reason != StopReason::Unfinished),
        forest: forest::rows(findings),
        why: why::views(&findings.explanations),
        sentences: comparisons.sentences(&groups),
        matrix: comparisons.matrix(&groups),
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
