//! Verdicts in colour on a terminal: the last cell of a table's row, and the cells of the matrix of verdicts. Nothing
//! is coloured in a pipe or a file, or where NO_COLOR is set (<https://no-color.org>).

use std::io::{IsTerminal, stdout};

const GREEN: &str = "\x1b[32m";
const BLUE: &str = "\x1b[34m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Whether standard output shows colours.
pub(crate) fn is_wanted() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stdout().is_terminal() && !is_refused && !is_dumb
}

/// The heading of the matrix of verdicts.
const MATRIX: &str = "Verdicts";

#[derive(Clone, Copy, PartialEq)]
enum OutputPart {
    Text,
    /// Below the heading of the matrix: its legend and the names of its columns.
    Heading,
    Matrix,
}

/// Text with its verdicts in colour.
pub(crate) fn paint(text: &str) -> String {
    let mut part = OutputPart::Text;
    let mut painted = String::new();
    for line in text.split_inclusive('\n') {
        part = match line.trim_end() {
            MATRIX => OutputPart::Heading,
            "" => OutputPart::Text,
            row if part == OutputPart::Heading && row.chars().all(|c| c == '─') => OutputPart::Matrix,
            _ => part,
        };
        painted += &if part == OutputPart::Matrix { paint_matrix(line) } else { paint_row(line) };
    }
    painted
}

/// A row of the matrix: its name, then a verdict in each cell. Controls have none.
fn paint_matrix(line: &str) -> String {
    let mut cells = line.split("  ");
    let mut painted = cells.next().unwrap_or_default().to_owned();
    let is_control = painted.starts_with("control");
    for cell in cells {
        let word = cell.trim();
        let colour = match word {
            "" | "0" | "-" => None,
            "?" => Some(YELLOW),
            "=" => Some(BLUE),
            word if word.contains("worse") => Some(RED),
            _ => Some(GREEN),
        };
        painted += "  ";
        match colour.filter(|_| !is_control) {
            Some(colour) => painted += &cell.replacen(word, &format!("{colour}{word}{PLAIN}"), 1),
            None => painted += cell,
        }
    }
    painted
}

fn paint_row(line: &str) -> String {
    let row = line.trim_end();
    // Cells are two spaces apart, words of a sentence one.
    let Some(at) = row.rfind("  ").map(|at| at + 2) else { return line.to_owned() };
    let cell = &row[at..];
    let Some(colour) = colour_of(cell).filter(|_| !row[..at].trim().is_empty()) else {
        return line.to_owned();
    };
    format!("{}{colour}{cell}{PLAIN}{}", &row[..at], &line[row.len()..])
}

fn colour_of(cell: &str) -> Option<&'static str> {
    // Why a comparison ended is behind its verdict, in parentheses, and footnotes are in brackets.
    let verdict = cell.split(" (").next().and_then(|verdict| verdict.split(" [").next()).unwrap_or(cell);
    match verdict {
        "equivalent" => Some(BLUE),
        "inconclusive" => Some(YELLOW),
        verdict if verdict.ends_with(" better") => Some(GREEN),
        verdict if verdict.ends_with(" worse") => Some(RED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdicts_of_rows_are_painted() {
        for (row, colour, verdict) in [
            ("1408 B  1.5  1.4  -3.3  30  IPv6 better (time was up)\n", GREEN, "IPv6 better (time was up)"),
            ("  connect        ms  1.00  1.01   1.0 (0.9 to 1.1)    equivalent\n", BLUE, "equivalent"),
            ("128 B  1  2  inconclusive", YELLOW, "inconclusive"),
            ("IPv6  640 B  0.64  0.7  2, 2  0.010  B worse (not allowed)", RED, "B worse (not allowed)"),
            ("64 B  1  2  IPv4 better [1]", GREEN, "IPv4 better [1]"),
        ] {
            let painted = paint(row);
            assert!(painted.contains(&format!("{colour}{verdict}{PLAIN}")), "{painted:?}");
            assert_eq!(painted.replace(colour, "").replace(PLAIN, ""), row);
        }
    }

    #[test]
    fn the_cells_of_the_matrix_are_painted() {
        let text = "Verdicts\nthe better arm; = equivalent, ? inconclusive\nsize in bytes  128  640\n─────\n\
                    throughput, TCP       IPv4 4.4 %    (IPv6 0.2 %)\nRTT, TCP  =  ?\nloss, UDP  0  worse 3 %\n\
                    control IPv4 vs IPv4  +0.3 ± 12.5 %\n\nNotes\n  a list  of words\n";
        let painted = paint(text);
        for (colour, cell) in
            [(GREEN, "IPv4 4.4 %"), (GREEN, "(IPv6 0.2 %)"), (BLUE, "="), (YELLOW, "?"), (RED, "worse 3 %")]
        {
            assert!(painted.contains(&format!("{colour}{cell}{PLAIN}")), "{painted:?}");
        }
        assert_eq!(painted.matches(PLAIN).count(), 5, "{painted:?}");
        let plain =
            [GREEN, BLUE, YELLOW, RED, PLAIN].iter().fold(painted, |text, code| text.replace(code, ""));
        assert_eq!(plain, text);
    }

    #[test]
    fn prose_and_data_stay_as_they_are() {
        for text in [
            "equivalent: the difference is within the margin.\n",
            "  the words of a list, of which none is better\n",
            "  \"verdict\": \"equivalent\",\n",
            "| 128 B | 1 | equivalent |\n",
            "a,b,equivalent\n",
            "\n",
        ] {
            assert_eq!(paint(text), text);
        }
    }
}
