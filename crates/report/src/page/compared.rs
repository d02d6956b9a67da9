//! The comparison of two records, as parts that the page lays out.

use crate::page::document::{BlockView, Compared};
use crate::page::rounding::facts;
use crate::rendering::document::Block;
use stacklab_model::Between;

/// The page's content for the comparison of two records.
pub fn compared(found: &Between) -> Compared {
    Compared { blocks: crate::records::document(found).into_iter().map(view).collect() }
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
