//! The width of text.

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
const LEAST: usize = 40;

impl Width {
    /// Of a terminal of this many columns. Long lines of prose are hard to read.
    pub fn of_terminal(columns: usize) -> Self {
        let columns = columns.max(LEAST);
        Width { prose: columns.min(WIDTH.prose), tables: columns }
    }
}
