//! CSV as a reader of it sees it.

/// The rows of a CSV, by the names of its header.
pub(crate) struct CsvRows {
    pub header: Vec<String>,
    pub lines: Vec<csv::StringRecord>,
}

impl CsvRows {
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let lines = reader.records().map(|row| row.expect("as wide as the header")).collect();
        CsvRows { header, lines }
    }

    pub(crate) fn at(&self, line: usize, name: &str) -> &str {
        let place = self.header.iter().position(|known| known == name);
        &self.lines[line][place.unwrap_or_else(|| panic!("no column {name}"))]
    }

    /// The numbers of the rows that have this text in a column.
    pub(crate) fn find(&self, name: &str, text: &str) -> Vec<usize> {
        (0..self.lines.len()).filter(|line| self.at(*line, name) == text).collect()
    }
}
