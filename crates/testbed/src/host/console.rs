//! The last lines of a guest's console, for error messages.

use crate::host::disk::full_disk;
use std::fs;
use std::path::Path;

const LINES: usize = 8;

/// What to append to an error message: whether the guest's disk is full, and the last lines of its console.
pub fn last_words(console: &Path) -> String {
    full_disk(console.parent().unwrap_or(console)) + &last_lines(&fs::read(console).unwrap_or_default())
}

pub(crate) fn last_lines(console: &[u8]) -> String {
    let text = String::from_utf8_lossy(console);
    let visible = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<String> = text.lines().map(visible).filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return String::new();
    }
    // The lines after this program's last message are only the kernel's shutdown messages.
    let own = lines.iter().rposition(|line| line.contains("stacklab:") || line.contains("Kernel panic"));
    let end = own.map_or(lines.len(), |own| own + 1);
    let last = &lines[end.saturating_sub(LINES)..end];
    format!("; the end of its console output:\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_without_what_moves_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console");
        assert_eq!(last_words(&console), "");
        let text: String = (0..9).map(|number| format!("\u{1b}line {number}\r\n\n")).collect();
        fs::write(&console, text).unwrap();
        let said = last_words(&console);
        assert!(
            said.ends_with("line 7\n    line 8") && said.contains("line 1") && !said.contains("line 0"),
            "{said}"
        );
    }
}
