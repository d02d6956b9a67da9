//! The document as plain text for a terminal.

use crate::rendering::document::{Block, Width, plain};
use crate::rendering::format::OutputFormat;
use crate::rendering::grid::draw_table;
use crate::rendering::{csv, latex, markdown};
use comfy_table::{LineStyle, TableStyle};

/// A document as text, Markdown, LaTeX, or the CSV of its tables.
pub(crate) fn render(blocks: &[Block], format: OutputFormat, width: Width) -> String {
    match format {
        OutputFormat::Markdown => markdown::render(blocks),
        OutputFormat::Latex => latex::render(blocks),
        OutputFormat::Csv | OutputFormat::RawCsv => csv::tables(blocks, format),
        _ => text(blocks, width),
    }
}

/// A document as text for a terminal of this width.
pub fn text(blocks: &[Block], Width { prose: width, tables }: Width) -> String {
    let mut text = String::new();
    for block in blocks {
        if matches!(block, Block::Heading(_)) {
            text.push('\n');
        }
        match block {
            Block::Title(title) => {
                let title = plain(title);
                text += &format!("{title}\n{}\n", "=".repeat(title.chars().count()));
            }
            Block::Heading(heading) => text += &wrap(&plain(heading), width, "", ""),
            Block::Text(prose) => text += &wrap(&plain(prose), width, "", ""),
            Block::Facts(facts) => {
                let longest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                let column = (longest + 1).max(10);
                for (name, fact) in facts {
                    text += &wrap(&plain(fact), width, &format!("{name:<column$}"), &" ".repeat(column));
                }
            }
            Block::List(points) => {
                for point in points {
                    text += &wrap(&plain(point), width, "- ", "  ");
                }
            }
            Block::Table(table) => {
                for (i, part) in table.within(tables).iter().enumerate() {
                    text += if i > 0 { "\n" } else { "" };
                    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
                    text += &draw_table(part, style, (0, 1), plain);
                }
                for (i, note) in table.footnotes.0.iter().enumerate() {
                    text += &wrap(&plain(note), width, &format!(" [{}] ", i + 1), "     ");
                }
            }
        }
    }
    text
}

/// Breaks a paragraph between words, but not before a per cent sign; `first` precedes its first line, `rest` the
/// others.
fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("there is always a first line");
        let needed = line.chars().count() + usize::from(!empty) + word.chars().count();
        if !empty && needed > width {
            lines.push(format!("{rest}{word}"));
        } else {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        empty = false;
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end().replace('\u{a0}', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_breaks_between_words() {
        assert_eq!(wrap("one two three", 9, "- ", "  "), "- one two\n  three\n");
        assert_eq!(wrap("indivisible word", 4, "", ""), "indivisible\nword\n");
        assert_eq!(wrap("about 90 % of", 8, "", ""), "about\n90 % of\n");
        assert_eq!(wrap("", 10, "", ""), "\n");
    }
}
