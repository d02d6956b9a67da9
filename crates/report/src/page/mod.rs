//! A campaign as a web page: one document of everything that is shown ([`page`], from a [`PageSource`]), and the page
//! around it ([`html`]), one file that works offline.

mod cells;
mod details;
mod document;
mod forest;
mod html;
mod losses;
mod runs;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
mod why;

pub(crate) use cells::AS_IT_IS;
pub use details::{Detailed, detail, tool_end};
pub use document::*;
pub use html::{NoPage, SCRIPT, STYLE, html, shell};
pub use source::{PageSource, Published, TestbedDrawing};
pub use verdicts::fleet_verdicts;
pub use why::exact_page;

use crate::findings::empty::without_empty;
use crate::findings::{answer, frame_loss, groups, heading, instructions, levels, notes, rfc8219};
use crate::page::cells::Index;
use stacklab_model::{Change, Findings, RecordDiff, RecordLoads, StopReason};

/// Longest headline of a list, letters.
const HEADLINE: usize = 300;

/// What a campaign says, in a line of a list.
pub fn headline(findings: &Findings) -> Headline {
    let findings = &*without_empty(findings);
    let answer = answer::answer(findings).unwrap_or_default();
    let is_long = answer.chars().count() > HEADLINE;
    let text = if is_long { format!("{}.", forest::count_answers(findings)) } else { answer };
    Headline { text, finished: is_complete(findings) }
}

fn is_complete(findings: &Findings) -> bool {
    findings.comparisons.iter().all(|comparison| comparison.stop_reason != StopReason::Unfinished)
}

/// Makes the document. The same source always gives the same one.
pub fn page(source: &PageSource) -> Page {
    let findings = &*without_empty(source.findings);
    let index = Index::new(findings, source.runs);
    let groups = groups::groups(findings);
    let pairs = forest::LevelPairs::new(findings);
    let numbered = verdicts::number_groups(&groups);
    Page {
        format: PAGE_FORMAT_VERSION,
        title: findings.title.clone(),
        answer: answer::answer(findings),
        facts: facts(heading::facts(findings)),
        legend: heading::LEGEND.to_owned(),
        finished: is_complete(findings),
        answered: forest::count_answers(findings),
        pairs: pairs.names(),
        forest: pairs.rows(findings, &index),
        why: why::views(&findings.explanations),
        losses: losses::views(findings),
        rfc8219: [rfc8219::blocks(findings), frame_loss::blocks(findings)].concat(),
        instructions: instructions::blocks(findings),
        levels: levels::blocks(findings),
        sentences: verdicts::sentences(&numbered, &pairs),
        matrix: verdicts::matrix(&numbered, &pairs, &index),
        notes: notes::points(findings),
        metrics: index.metrics(findings.cpu_scope),
        factors: index.factors(),
        cells: index.cells(),
        estimates: index.estimates(findings),
        comparisons: groups.iter().flat_map(|group| verdicts::views(group, &index)).collect(),
        limits: index.limits(source.limits),
        limited_by: source.limited_by.to_string(),
        published: index.list_published_series(source.published),
        runs: runs::runs(source.runs, findings.started_unix_ns, &index),
        details: source.details.to_vec(),
        testbed: source::build_testbed_view(&findings.testbed_description, source),
    }
}

/// The page's content for the comparison of two records.
pub fn build_comparison_page(found: &RecordDiff, loads: &RecordLoads) -> Compared {
    Compared { headline: counts(found), blocks: crate::records::document(found, loads) }
}

/// `B is better in 1 of 42 figures and worse in 2; 3 are equivalent, 36 are undecided.`
fn counts(found: &RecordDiff) -> String {
    let [better, worse, alike] = [Change::Better, Change::Worse, Change::Equivalent]
        .map(|change| found.figures.iter().filter(|row| row.change == change).count());
    let all = found.figures.len();
    let open = all - better - worse - alike;
    format!(
        "B is better in {better} of {all} figures and worse in {worse}; {alike} are equivalent, {open} are undecided."
    )
}
