//! The document as Markdown.

use crate::rendering::document::{Block, plain};
use crate::rendering::text::fill;
use comfy_table::presets::ASCII_MARKDOWN;

/// Renders the blocks, a blank line between them.
pub(crate) fn render(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(title) => format!("# {}\n", plain(title)),
        Block::Heading(heading) => format!("## {}\n", plain(heading)),
        Block::Text(text) => format!("{}\n", plain(text)),
        Block::Facts(facts) => {
            facts.iter().map(|(name, fact)| format!("- {name}: {}\n", plain(fact))).collect()
        }
        Block::List(points) => points.iter().map(|point| format!("- {}\n", plain(point))).collect(),
        Block::Table(table) => {
            let mut text = fill(table, ASCII_MARKDOWN, (1, 1), |cell| plain(cell).replace('|', "\\|"));
            let notes = table.footnotes.0.iter().enumerate();
            let notes: String = notes.map(|(i, note)| format!("- [{}] {}\n", i + 1, plain(note))).collect();
            if !notes.is_empty() {
                text += "\n";
                text += &notes;
            }
            text
        }
    }
}
