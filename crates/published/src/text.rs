//! Published studies as documents: the list, a study, and the audit.

use crate::audit::{Audited, audit};
use crate::finding::Finding;
use crate::tables::{Claim, PublishedTable, published_tables};
use crate::{Reference, STUDIES, StudyName};
use stacklab_model::Difference;
use stacklab_report::{Block, Table, WIDTH};

/// The studies with the number of figures, stated differences and findings.
pub fn list(all: &Reference) -> Vec<Block> {
    let own = STUDIES.each_ref().map(|study| all.of(study.name));
    let counts = |count: fn(&Reference) -> usize| own.iter().map(|own| count(own).to_string()).collect();
    let mut table = Table::default();
    table.push("study", false, STUDIES.iter().map(|study| study.name.to_owned()).collect());
    table.push("values", true, counts(|own| own.figures.len()));
    table.push("claims", true, counts(|own| own.claims.len()));
    table.push("findings", true, counts(|own| own.findings.len()));
    table.push("compared", false, STUDIES.iter().map(|study| study.subject.to_owned()).collect());
    vec![
        Block::Table(table),
        Block::Text(format!(
            "{} values, {} claims (differences stated), {} findings (directions stated)",
            all.figures.len(),
            all.claims.len(),
            all.findings.len()
        )),
    ]
}

/// A study's tables, stated differences and findings.
pub fn show(study: &StudyName, all: &Reference) -> Vec<Block> {
    let own = all.of(study.name);
    let mut blocks = vec![Block::Title(study.name.to_owned()), Block::Text(study.subject.to_owned())];
    for table in published_tables(&own.figures) {
        blocks.push(Block::Heading(table.title.clone()));
        blocks.push(Block::Table(tabulate(&table)));
    }
    blocks.push(Block::Heading("Differences that it states".to_owned()));
    blocks.push(Block::Table(audit_table(&audit(&own.claims), false)));
    blocks.push(Block::Heading("Directions that it finds".to_owned()));
    let mut lines = Vec::new();
    for Finding { id, location, scope, statement, .. } in &own.findings {
        lines.push(format!("{id} ({location}; {}): {statement}", scope.text));
    }
    blocks.push(Block::List(lines));
    blocks
}

/// The table, with the names of its systems in the header, or below it if they are too long.
fn tabulate(published: &PublishedTable) -> Table {
    let full = fill_columns(published, false);
    if full.width() <= WIDTH.prose { full } else { fill_columns(published, true) }
}

fn fill_columns(published: &PublishedTable, has_footnotes: bool) -> Table {
    let mut table = Table::default();
    table.push("size", true, published.rows.iter().map(|(size, _)| size.clone()).collect());
    for (index, (os, ip)) in published.columns.iter().enumerate() {
        let system = if has_footnotes { table.footnotes.mark(os) } else { os.clone() };
        let cells = published.rows.iter().map(|(_, cells)| cells[index].clone());
        table.push(format!("{system} {ip}"), true, cells.collect());
    }
    table
}

/// Every stated difference with the formulas that reproduce it.
pub fn audit_blocks(all: &Reference) -> Vec<Block> {
    let audited = audit(&all.claims);
    let mut blocks = vec![Block::Title("Stated differences, recomputed from the printed figures".to_owned())];
    for study in STUDIES {
        let own = audited.iter().filter(|audited| audited.claim.source == study.name);
        let own: Vec<Audited<'_>> = own.cloned().collect();
        blocks.push(Block::Heading(study.name.to_owned()));
        blocks.push(Block::Table(audit_table(&own, true)));
    }
    let none: Vec<_> = audited.iter().filter(|audited| audited.reproduced_by.is_none()).collect();
    let rounding = none.iter().filter(|audited| !audited.within_rounding.is_empty()).count();
    let apart = audited.iter().filter(|audited| audited.difference_agrees == Some(false)).count();
    blocks.push(Block::Heading("Result".to_owned()));
    blocks.push(Block::List(vec![
        format!(
            "{} of {} claims are reproduced at the printed precision",
            audited.len() - none.len(),
            audited.len()
        ),
        format!("{rounding} are consistent with rounding of the two printed figures"),
        format!("{} are not reproduced by any formula", none.len() - rounding),
        format!("{apart} state a difference in the figures' unit that the figures cannot have"),
    ]));
    blocks.push(Block::Heading("Formulas".to_owned()));
    let formulas = Difference::ALL.iter();
    blocks
        .push(Block::List(formulas.map(|formula| format!("{formula}: {}", formula.definition())).collect()));
    blocks
}

fn audit_table(audited: &[Audited<'_>], recomputed: bool) -> Table {
    let column = |cell: &dyn Fn(&Audited<'_>) -> String| audited.iter().map(cell).collect::<Vec<String>>();
    let mut table = Table::default();
    table.push("where", false, column(&|audited| audited.claim.location.clone()));
    table.push(
        "what",
        false,
        column(&|audited| {
            let Claim { metric, a_label, b_label, .. } = audited.claim;
            format!("{metric}: {a_label}, {b_label}")
        }),
    );
    table.push("a", true, column(&|audited| audited.claim.a.to_string()));
    table.push("b", true, column(&|audited| audited.claim.b.to_string()));
    table.push("stated", true, column(&|audited| format_claim(audited.claim)));
    if recomputed {
        table.push("symmetric", true, column(&|audited| format_figure(audited.recomputed.symmetric)));
        table.push("lower", true, column(&|audited| format_figure(audited.recomputed.lower)));
        table.push("higher", true, column(&|audited| format_figure(audited.recomputed.higher)));
        table.push("points", true, column(&|audited| format_figure(audited.recomputed.points)));
    }
    table.push("reproduced by", false, column(&outcome));
    table
}

fn format_figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.4}"))
}

/// The stated difference: per cent, or in the unit of the figures, or both.
fn format_claim(claim: &Claim) -> String {
    match (&claim.percent, &claim.difference) {
        (Some(percent), Some(difference)) => format!("{percent} % ({difference} {})", claim.unit),
        (Some(percent), None) => format!("{percent} %"),
        (None, _) => format!("{} {}", claim.stated_difference(), claim.unit),
    }
}

fn outcome(audited: &Audited<'_>) -> String {
    let mut outcome = match audited.reproduced_by {
        Some(formula) => {
            let others: Vec<_> = audited.formulas.iter().copied().filter(|other| *other != formula).collect();
            let also =
                if others.is_empty() { String::new() } else { format!(" (also {})", join_names(&others)) };
            format!("{formula}{also}")
        }
        None if audited.within_rounding.is_empty() => "none".to_owned(),
        None => format!("consistent with rounding ({})", join_names(&audited.within_rounding)),
    };
    if audited.difference_agrees == Some(false) {
        outcome += "; the difference in their unit is wrong";
    }
    outcome
}

fn join_names(formulas: &[Difference]) -> String {
    formulas.iter().map(|formula| formula.name()).collect::<Vec<_>>().join(", ")
}
