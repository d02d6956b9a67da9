//! The kinds of table that papers print: both arms and their difference in per cent by a formula with a name, and the
//! standard deviations.

use crate::findings::comparisons::fit_estimates;
use crate::findings::groups::{Group, groups};
use crate::rendering::document::{Block, Table, Width};
use crate::rendering::format::OutputFormat;
use crate::rendering::numbers::{DisplayUnit, NONE, decimals, format_decimals, format_with_sign};
use crate::rendering::text::render;
use stacklab_model::{Comparison, Difference, Estimate, Findings};

/// Renders the findings as such tables: text, Markdown, LaTeX, or CSV with each table below a line with its title.
/// `width` is the number of columns for the prose of text.
pub fn paper(findings: &Findings, difference: Difference, format: OutputFormat, width: Width) -> String {
    render(&blocks(findings, difference), format, width)
}

/// Two tables for each metric, transport and meaning of size that two levels are compared by: means and spreads.
fn blocks(findings: &Findings, difference: Difference) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(findings.title.clone()),
        Block::Text(format!(
            "Difference ({difference}): {}; negative where the second arm is lower.",
            difference.definition()
        )),
    ];
    for group in groups(findings) {
        let metric = group.metric.label();
        let unit = DisplayUnit::of(group.metric).unit;
        blocks.push(Block::Heading(format!("{metric}, {unit}, {}", group.place)));
        blocks.push(Block::Table(means(&group, difference)));
        blocks.push(Block::Heading(format!("{metric}: standard deviation, {unit}, {}", group.place)));
        blocks.push(Block::Table(spreads(&group)));
    }
    blocks
}

fn means(group: &Group, difference: Difference) -> Table {
    let shown = DisplayUnit::of(group.metric);
    let both: Vec<[Estimate; 2]> = group.rows.iter().map(|row| fit_estimates(row)).collect();
    let mut table = arms(group, &both, |estimate| estimate.mean);
    let unit = if difference == Difference::Points { shown.unit } else { "%" };
    let mut column = Vec::new();
    for [baseline, candidate] in &both {
        let apart = baseline.mean.zip(candidate.mean).and_then(|(a, b)| {
            let apart = difference.of(shown.factor * a, shown.factor * b)?;
            Some(apart.copysign(b - a))
        });
        column.push(apart.map_or(NONE.to_owned(), |apart| format_with_sign(apart, 2)));
    }
    table.push(format!("difference ({difference}), {unit}"), true, column);
    table
}

fn spreads(group: &Group) -> Table {
    let both: Vec<[Estimate; 2]> = group
        .rows
        .iter()
        .map(|row| [row.baseline_estimate.clone(), row.candidate_estimate.clone()])
        .collect();
    let mut table = arms(group, &both, |estimate| estimate.sd);
    table.push("runs", true, group.rows.iter().map(|row| count_runs(row)).collect());
    table
}

fn count_runs(row: &Comparison) -> String {
    let a = row.baseline_estimate.n;
    let b = row.candidate_estimate.n;
    if a == b { a.to_string() } else { format!("{a}, {b}") }
}

/// A row for each comparison, with this figure of both arms.
fn arms(group: &Group, estimates: &[[Estimate; 2]], figure: fn(&Estimate) -> Option<f64>) -> Table {
    let mut table = Table::default();
    table.push("", false, group.rows.iter().map(|row| group.row_label(row)).collect());
    let factor = DisplayUnit::of(group.metric).factor;
    let figures: Vec<[Option<f64>; 2]> = estimates
        .iter()
        .map(|both| both.each_ref().map(|estimate| figure(estimate).map(|figure| factor * figure)))
        .collect();
    let places = decimals(figures.iter().flatten().flatten().copied(), std::iter::empty());
    for (arm, title) in [&group.baseline, &group.candidate].into_iter().enumerate() {
        let mut column = Vec::new();
        for both in &figures {
            column.push(both[arm].map_or(NONE.to_owned(), |figure| format_decimals(figure, places)));
        }
        table.push(title, true, column);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use crate::tests::fixtures::findings;

    #[test]
    fn difference_follows_the_named_formula() {
        let mut findings = findings();
        let row = &mut findings.comparisons[0];
        // Not the means over runs, as where trials were disturbed.
        row.fitted = row.fitted.map(|fitted| [1.1 * fitted[0], 0.9 * fitted[1]]);
        let [a, b] = row.fitted.unwrap();
        for difference in Difference::ALL {
            let text = paper(&findings, *difference, OutputFormat::Csv, WIDTH);
            let expected = format_with_sign(difference.of(a, b).unwrap().copysign(b - a), 2);
            assert!(text.contains(&format!("difference ({difference})")), "{text}");
            assert!(text.contains(&expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn every_format_has_every_table() {
        let findings = findings();
        let tables = 2 * groups(&findings).len();
        let latex = paper(&findings, Difference::Symmetric, OutputFormat::Latex, WIDTH);
        assert_eq!(latex.matches("\\begin{tabular}").count(), tables);
        let markdown = paper(&findings, Difference::Symmetric, OutputFormat::Markdown, WIDTH);
        assert_eq!(markdown.matches("## ").count(), tables);
        let csv = paper(&findings, Difference::Symmetric, OutputFormat::Csv, WIDTH);
        assert_eq!(csv.lines().filter(|line| line.starts_with("# ")).count(), tables);
        let text = paper(&findings, Difference::Symmetric, OutputFormat::Text, WIDTH);
        assert!(text.contains("standard deviation"));
    }
}
