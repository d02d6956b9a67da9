//! The comparison of two records, as parts that the page lays out.

use crate::page::document::{BlockView, Compared};
use crate::page::rounding::facts;
use crate::rendering::document::Block;
use stacklab_model::{Change, RecordDiff};

/// The page's content for the comparison of two records.
pub fn compared(found: &RecordDiff) -> Compared {
    Compared {
        headline: headline(found),
        blocks: crate::records::document(found).into_iter().map(view).collect(),
    }
}

/// `B is better in 1 of 42 figures and worse in 2; 3 are equivalent, 36 are undecided.`
fn headline(found: &RecordDiff) -> String {
    let count = |is: fn(&Change) -> bool| found.figures.iter().filter(|row| is(&row.change)).count();
    let [better, worse, alike] = [
        count(|change| matches!(change, Change::Better)),
        count(|change| matches!(change, Change::Worse)),
        count(|change| matches!(change, Change::Equivalent)),
    ];
    let all = found.figures.len();
    let open = all - better - worse - alike;
    format!(
        "B is better in {better} of {all} figures and worse in {worse}; {alike} are equivalent, {open} are undecided."
    )
}

fn view(block: Block) -> BlockView {
    match block {
        Block::Title(text) => BlockView::Title { text },
        Block::Heading(text) => BlockView::Heading { text },
        Block::Text(text) => BlockView::Prose { text },
        Block::Facts(named) => BlockView::Facts { facts: facts(named) },
        Block::List(points) => BlockView::List { points },
        Block::Table(table) => {
            let (columns, figures) = table.columns.into_iter().unzip();
            BlockView::Table { columns, figures, rows: table.rows, notes: table.footnotes.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::found;

    #[test]
    fn a_headline_counts_every_figure_once() {
        let said = compared(&found()).headline;
        assert_eq!(said, "B is better in 0 of 2 figures and worse in 1; 0 are equivalent, 1 are undecided.");
    }
}
