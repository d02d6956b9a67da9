//! A document of headings, prose and tables, and the width of its text.

use serde::Serialize;
use stacklab_model::is_control;

/// A block of a document.
#[expect(missing_docs, reason = "their names say what they are")]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", content = "content", rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Block {
    Title(String),
    Heading(String),
    Text(String),
    /// Names and values.
    Facts(Vec<(&'static str, String)>),
    List(Vec<String>),
    Table(Table),
}

/// Rows of cells below their titles, and notes below them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Table {
    /// Titles, and whether the column is aligned to the right.
    pub columns: Vec<(String, bool)>,
    /// As many cells in each row as there are columns.
    pub rows: Vec<Vec<String>>,
    /// Why cells are empty.
    pub footnotes: Footnotes,
    /// Numbers of the columns that a narrow terminal leaves out, the first one first.
    #[serde(skip)]
    pub optional: Vec<usize>,
    /// How many of the first columns say what a row is of, if more than one: they stand in each part of the table.
    #[serde(skip)]
    pub keys: usize,
}

impl Table {
    /// Adds a column, one cell for each row.
    pub fn push(&mut self, title: impl Into<String>, right: bool, cells: Vec<String>) {
        self.columns.push((title.into(), right));
        self.rows.resize(cells.len(), Vec::new());
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }

    /// Adds a column of figures that a narrow terminal leaves out.
    pub fn push_optional(&mut self, title: impl Into<String>, cells: Vec<String>) {
        self.optional.push(self.columns.len());
        self.push(title, true, cells);
    }

    /// The table in this many columns of a terminal, if that can be: without optional columns, then in several parts,
    /// each with the columns that say what a row is of.
    pub(crate) fn within(&self, width: usize) -> Vec<Table> {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        for optional in &self.optional {
            if self.of(&kept).width() <= width {
                break;
            }
            kept.retain(|column| column != optional);
        }
        let keys = self.keys.max(1).min(kept.len());
        let key_columns = kept[..keys].to_vec();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for column in kept {
            match parts.last_mut() {
                Some(part)
                    if part.len() <= keys || self.of(&[&part[..], &[column]].concat()).width() <= width =>
                {
                    part.push(column);
                }
                Some(_) => parts.push([&key_columns[..], &[column]].concat()),
                None => parts.push(vec![column]),
            }
        }
        let mut parts: Vec<Table> = parts.iter().map(|part| self.of(part)).collect();
        if let Some(last) = parts.last_mut() {
            last.footnotes = self.footnotes.clone();
        }
        parts
    }

    fn of(&self, columns: &[usize]) -> Table {
        let mut rows = Vec::new();
        for row in &self.rows {
            rows.push(columns.iter().map(|column| row[*column].clone()).collect());
        }
        let columns = columns.iter().map(|column| self.columns[*column].clone()).collect();
        Table { columns, rows, ..Table::default() }
    }

    /// Columns of a terminal that it takes: the widest cells with two spaces between them.
    pub fn width(&self) -> usize {
        let mut width = 2 * self.columns.len().saturating_sub(1);
        for (column, (title, _)) in self.columns.iter().enumerate() {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            width += cells.fold(title.chars().count(), usize::max);
        }
        width
    }
}

/// Footnotes, each once, referred to by number.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Footnotes(pub Vec<String>);

impl Footnotes {
    /// The mark of a footnote, which is added when it is new.
    pub fn mark(&mut self, reason: &str) -> String {
        let known = self.0.iter().position(|known| known == reason);
        let index = known.unwrap_or_else(|| {
            self.0.push(reason.to_owned());
            self.0.len() - 1
        });
        format!("[{}]", index + 1)
    }
}

/// A text without its footnote mark and what follows it, for a footnote that is shown elsewhere.
pub(crate) fn without_mark(text: &str) -> String {
    split_mark(text).0.to_owned()
}

/// A text before its first footnote mark, and the rest with that mark: `3 [0, 26]` and `[1]`.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    for (place, _) in text.match_indices(" [") {
        let number = text[place + 2..].split(']').next().unwrap_or_default();
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            return (&text[..place], &text[place + 1..]);
        }
    }
    (text, "")
}

/// On one line and without control characters, also those that change the direction of text: titles, names and reasons
/// come from files and other hosts.
pub(crate) fn plain(text: &str) -> String {
    text.replace(is_control, " ")
}

/// Text for XML and HTML, without control characters.
pub fn escape_text(text: &str) -> String {
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace(['\u{fffe}', '\u{ffff}'], " ")
}

/// How wide text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    /// Columns for prose.
    pub prose: usize,
    /// Columns for tables: narrow ones leave columns out, or are in parts.
    pub tables: usize,
}

/// The width of text for files and other programs: tables are whole.
pub const WIDTH: Width = Width { prose: 110, tables: usize::MAX };
/// The narrowest terminal that text is fitted to.
const MIN_WIDTH: usize = 40;

impl Width {
    /// Of a terminal of this many columns. Long lines of prose are hard to read.
    pub fn of_terminal(columns: usize) -> Self {
        let columns = columns.max(MIN_WIDTH);
        Width { prose: columns.min(WIDTH.prose), tables: columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendering::format::OutputFormat;
    use crate::rendering::text::render;

    #[test]
    fn a_reason_has_one_number() {
        let mut notes = Footnotes::default();
        assert_eq!(
            (notes.mark("a"), notes.mark("b"), notes.mark("a")),
            ("[1]".into(), "[2]".into(), "[1]".into())
        );
        assert_eq!(notes.0, ["a", "b"]);
    }

    #[test]
    fn a_mark_is_a_number_alone() {
        assert_eq!(split_mark("58 ± 3 [1]"), ("58 ± 3", "[1]"));
        assert_eq!(split_mark("3 [0, 26] [1] [2]"), ("3 [0, 26]", "[1] [2]"));
        assert_eq!(split_mark("3 [0, 26]"), ("3 [0, 26]", ""));
        assert_eq!(without_mark("none seen [1] (most blocks)"), "none seen");
    }

    #[test]
    fn a_table_fits_without_optional_columns_or_in_parts() {
        let mut table = Table::default();
        for (title, optional) in [("level", false), ("first", false), ("second", true), ("third", false)] {
            let cells = vec![format!("{title}..")];
            if optional {
                table.push_optional(title, cells)
            } else {
                table.push(title, false, cells)
            };
        }
        table.footnotes.mark("why");
        for (width, titles) in [
            (80, &["level first second third"][..]),
            (25, &["level first third"]),
            (20, &["level first", "level third"]),
            (1, &["level first", "level third"]),
        ] {
            let parts = table.within(width);
            assert!(parts.iter().all(|part| part.width() <= width || part.columns.len() == 2), "{width}");
            assert_eq!(parts.last().unwrap().footnotes.0, ["why"]);
            assert_eq!(list_titles(parts), titles);
        }
        assert_eq!(Table::default().within(10), []);
        let with_keys = Table { keys: 2, ..table };
        assert_eq!(list_titles(with_keys.within(20)), ["level first third"]);
    }

    fn list_titles(parts: Vec<Table>) -> Vec<String> {
        let mut titles = Vec::new();
        for part in parts {
            titles.push(part.columns.into_iter().map(|(title, _)| title).collect::<Vec<_>>().join(" "));
        }
        titles
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[31m\nb"), "a [31m b");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{2028}d\u{200f}e"), "a b c d e");
    }

    #[test]
    fn a_table_as_csv_holds_no_formula() {
        let mut table = Table::default();
        table.push("name", false, vec!["=1+x".to_owned()]);
        assert_eq!(render(&[Block::Table(table)], OutputFormat::Csv, WIDTH), "name\n'=1+x\n");
    }

    #[test]
    fn no_format_has_a_control_character_of_a_text() {
        let hostile = "a\u{1b}[2J\u{9b}b".to_owned();
        let mut table = Table::default();
        table.push(hostile.clone(), false, vec![hostile.clone()]);
        table.footnotes.mark(&hostile);
        let blocks = [
            Block::Title(hostile.clone()),
            Block::Heading(hostile.clone()),
            Block::Text(hostile.clone()),
            Block::Facts(vec![("fact", hostile.clone())]),
            Block::List(vec![hostile.clone()]),
            Block::Table(table),
            Block::Heading(hostile),
        ];
        use OutputFormat::{Csv, Latex, Markdown, Text};
        for format in [Text, Markdown, Latex, Csv] {
            let rendered = render(&blocks, format, WIDTH);
            assert!(rendered.contains("[2J"), "{rendered}");
            assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
        }
    }
}
