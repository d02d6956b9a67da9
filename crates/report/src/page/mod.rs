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

pub(crate) use cells::AS_IT_IS;
pub use compared::compared;
pub use details::{Detailed, detail, tool_side};
pub use document::*;
pub use html::{NoPage, SCRIPT, STYLE, html, shell};
pub use source::{PageSource, Published, TestbedDrawing};

use crate::findings::{answer, groups, heading, notes};
use crate::page::cells::Index;
use crate::page::rounding::facts;
use stacklab_model::{Findings, StopReason};

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
