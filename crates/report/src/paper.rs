//! The kinds of table that papers print: both arms and their difference in per cent by a formula with a name, and the
//! standard deviations.

use crate::findings::groups::{Group, groups};
use crate::rendering::document::{Block, Table, Width};
use crate::rendering::format::OutputFormat;
use crate::rendering::numbers::{DisplayUnit, NONE, decimals, fixed};
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
        Block::Text(format!("Difference ({difference}): {}.", difference.definition())),
    ];
    for group in groups(findings) {
        let unit = DisplayUnit::of(group.metric).unit;
        let heading =
            |what: &str| Block::Heading(format!("{}{what}, {unit}, {}", group.metric.label(), group.place));
        blocks.extend([heading(""), Block::Table(means(&group, difference))]);
        blocks.extend([heading(": standard deviation"), Block::Table(spreads(&group))]);
    }
    blocks
}

fn means(group: &Group, difference: Difference) -> Table {
    let shown = DisplayUnit::of(group.metric);
    let mut table = arms(group, |estimate| estimate.mean);
    let unit = if difference == Difference::Points { shown.unit } else { "%" };
    let apart = group.rows.iter().map(|row| {
        let a = row.baseline_estimate.mean?;
        let b = row.candidate_estimate.mean?;
        difference.of(shown.factor * a, shown.factor * b)
    });
    let column = apart.map(|apart| apart.map_or(NONE.to_owned(), |apart| fixed(apart, 2))).collect();
    table.push(format!("difference ({difference}), {unit}"), true, column);
    table
}

fn spreads(group: &Group) -> Table {
    let mut table = arms(group, |estimate| estimate.sd);
    let n = |row: &&Comparison| {
        let a = row.baseline_estimate.n;
        let b = row.candidate_estimate.n;
        if a == b { a.to_string() } else { format!("{a}, {b}") }
    };
    table.push("runs", true, group.rows.iter().map(n).collect());
    table
}

fn arms(group: &Group, figure: fn(&Estimate) -> Option<f64>) -> Table {
    let mut table = Table::default();
    table.push("", false, group.rows.iter().map(|row| group.row_label(row)).collect());
    let factor = DisplayUnit::of(group.metric).factor;
    let of = |estimate: &Estimate| figure(estimate).map(|figure| factor * figure);
    let both = group.rows.iter().flat_map(|row| [of(&row.baseline_estimate), of(&row.candidate_estimate)]);
    let places = decimals(both.flatten(), std::iter::empty());
    let write = |figure: Option<f64>| figure.map_or(NONE.to_owned(), |figure| fixed(figure, places));
    let column =
        |arm: fn(&Comparison) -> &Estimate| group.rows.iter().map(|row| write(of(arm(row)))).collect();
    table.push(&group.baseline, true, column(|row| &row.baseline_estimate));
    table.push(&group.candidate, true, column(|row| &row.candidate_estimate));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use crate::tests::fixtures::findings;

    #[test]
    fn difference_follows_the_named_formula() {
        let findings = findings();
        let row = &findings.comparisons[0];
        let a = row.baseline_estimate.mean.unwrap();
        let b = row.candidate_estimate.mean.unwrap();
        for difference in Difference::ALL {
            let text = paper(&findings, *difference, OutputFormat::Csv, WIDTH);
            let expected = fixed(difference.of(a, b).unwrap(), 2);
            assert!(text.contains(&format!("difference ({difference})")), "{text}");
            assert!(text.contains(&expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn every_format_has_every_table() {
        let findings = findings();
        let tables = 2 * groups(&findings).len();
        let of = |format| paper(&findings, Difference::Symmetric, format, WIDTH);
        assert_eq!(of(OutputFormat::Latex).matches("\\begin{tabular}").count(), tables);
        assert_eq!(of(OutputFormat::Markdown).matches("## ").count(), tables);
        assert_eq!(of(OutputFormat::Csv).lines().filter(|line| line.starts_with("# ")).count(), tables);
        assert!(of(OutputFormat::Text).contains("standard deviation"));
    }
}
