//! The samples of README and docs: the program prints such output.

use crate::support::program::{Outcome, Program};

use std::fs;
use std::path::Path;

const PAGES: [&str; 3] = ["README.md", "docs/tutorial-research.md", "docs/commands.md"];
/// A sample of a run. It depends on the machine, so only its tables and summary lines are compared, by shape.
const QUICKSTART: &str = "$ stacklab run quickstart";
/// Verdicts that a table may end in.
const VERDICTS: [&str; 6] =
    ["IPv4 better", "IPv6 better", "equivalent", "inconclusive", "none seen", "nothing"];

/// Indented code, or code between fences, of a page: one text for each block.
fn blocks(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut blocks = vec![String::new()];
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            blocks.push(String::new());
            continue;
        }
        match if fenced { Some(line) } else { line.strip_prefix("    ") } {
            Some("") => blocks.last_mut().unwrap().push('\n'),
            Some(code) => blocks.last_mut().unwrap().extend([code.trim_end(), "\n"]),
            None if line.is_empty() => blocks.last_mut().unwrap().push('\n'),
            None => blocks.push(String::new()),
        }
    }
    let blocks = blocks.iter().map(|block| block.trim_matches('\n').to_owned());
    blocks.filter(|block| !block.is_empty()).collect()
}

/// A line of a report without what depends on the machine: its figures, its units, and its verdict or claims.
fn shape(line: &str) -> String {
    let line = match VERDICTS.iter().filter_map(|verdict| line.find(verdict)).min() {
        Some(at) => &line[..at],
        None => line,
    };
    let mut line = line.replace("[too wide]", "[0, 0]");
    // A cell of the matrix is a verdict; its row has a label.
    if let Some(at) = line.find(", TCP  ").or(line.find(", UDP  ")) {
        line.truncate(at + ", TCP".len());
    }
    // What a control says of its width depends on the machine: with few blocks it is too wide.
    if line.starts_with("control")
        && let Some(at) = line.find(" vs IPv4")
    {
        line.truncate(at + " vs IPv4".len());
    }
    let mut masked = String::new();
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        // A mean has both ends of its interval where one of them is not possible, and that depends on the machine.
        if word == "±" {
            words.next();
            masked += " [#, #]";
            continue;
        }
        let bare = word.trim_matches(|mark| matches!(mark, '[' | ']' | ',' | '(' | ')'));
        let number = bare.trim_end_matches('x').parse::<f64>().is_ok() || bare.starts_with("──");
        let word = match bare {
            "us" | "ms" | "ns" | "Mbit/s" | "Gbit/s" => word.replace(bare, "UNIT"),
            // A size labels its row.
            _ if number && words.peek() != Some(&"B") => word.replace(bare, "#"),
            _ => word.to_owned(),
        };
        masked.extend([" ", &word]);
    }
    masked
}

/// The tables and summary lines of a page's sample are in the output of the quickstart, but for figures and verdicts.
pub(super) fn assert_quickstart_prints(page: &str, output: &str) {
    let printed: Vec<String> = output.lines().map(shape).collect();
    let mut compared = 0;
    for sample in blocks(page).iter().filter(|block| block.starts_with(QUICKSTART)) {
        for part in sample.split("\n\n") {
            let lines: Vec<&str> =
                part.lines().filter(|line| !line.starts_with('$') && *line != "...").collect();
            let is_table = lines.iter().any(|line| line.starts_with("──"));
            for line in lines.iter().filter(|line| is_table || line.starts_with("- throughput")) {
                // A footnote stands where nothing was seen.
                if !line.starts_with(" [") {
                    compared += 1;
                    assert!(
                        printed.contains(&shape(line)),
                        "{page} has a line that the quickstart does not print:\n{line}\n{output}"
                    );
                }
            }
        }
    }
    assert!(compared > 5, "{page} has no sample that begins with `{QUICKSTART}`");
}

#[test]
fn documented_errors_are_printed() {
    let program = Program::new();
    let mut samples = 0;
    for page in PAGES {
        for sample in
            blocks(page).iter().filter(|block| block.starts_with('$') && !block.starts_with(QUICKSTART))
        {
            samples += 1;
            let (command, expected) = sample[1..].trim_start().split_once('\n').unwrap();
            let command = command.replacen("stacklab", "\"$STACKLAB\"", 1);
            let outcome = Outcome::of(program.script(&["sh", "-c"], &format!("{command} 2>&1")));
            assert_eq!(outcome.stdout.trim_end(), expected.trim_end(), "{page}: {command}");
        }
    }
    assert!(samples > 0);
}
