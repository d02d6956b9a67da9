//! A document's tables as LaTeX, to be put into another document; they need the package `booktabs`.

use crate::rendering::document::{Block, Table, plain};

/// Renders each table as a `table` environment with the heading before it as its caption, and text as comments.
pub(crate) fn render(blocks: &[Block]) -> String {
    let mut latex = "% needs \\usepackage{booktabs}\n".to_owned();
    let mut caption = String::new();
    for block in blocks {
        match block {
            Block::Title(text) | Block::Text(text) => latex += &format!("% {}\n", plain(text)),
            Block::Heading(heading) => caption.clone_from(heading),
            Block::Facts(facts) => {
                latex.extend(facts.iter().map(|(name, fact)| format!("% {name}: {}\n", plain(fact))));
            }
            Block::List(points) => {
                latex.extend(points.iter().map(|point| format!("% {}\n", plain(point))));
            }
            Block::Table(found) => latex += &table(found, &caption),
        }
    }
    latex
}

fn table(table: &Table, caption: &str) -> String {
    let columns: String = table.columns.iter().map(|(_, right)| if *right { 'r' } else { 'l' }).collect();
    let head = write_row(table.columns.iter().map(|(title, _)| title));
    let body: String = table.rows.iter().map(|cells| write_row(cells.iter())).collect();
    format!(
        "\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\\midrule\n{body}\
         \\bottomrule\n\\end{{tabular}}\n{}\\end{{table}}\n",
        escape(caption),
        footnotes(table)
    )
}

fn write_row<'a>(cells: impl Iterator<Item = &'a String>) -> String {
    let cells: Vec<String> = cells.map(|cell| escape(cell)).collect();
    format!("{} \\\\\n", cells.join(" & "))
}

/// The texts of the marks in a table, below it.
fn footnotes(table: &Table) -> String {
    let mut lines = String::new();
    for (number, text) in table.footnotes.0.iter().enumerate() {
        lines += &format!("\\par\\footnotesize [{}] {}\n", number + 1, escape(text));
    }
    lines
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in plain(text).chars() {
        match c {
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    // After the end of a row, these would be its arguments.
    if escaped.trim_start().starts_with(['[', '*']) { format!("{{}}{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_its_heading_as_caption_and_escapes_latex() {
        let mut found = Table::default();
        found.push("size", true, vec!["64 B".to_owned(), "[5cm]".to_owned(), "*".to_owned()]);
        let texts = ["5 & 6", "\\input{x}", "~^"];
        found.push("a_b, %", false, texts.map(str::to_owned).to_vec());
        let mark = found.footnotes.mark("50 % of_all");
        found.rows[0][1] = format!("5 & 6 {mark}");
        let latex = render(&[Block::Heading("one_way_delay, 50 %".to_owned()), Block::Table(found)]);
        assert!(latex.contains("\\caption{one\\_way\\_delay, 50 \\%}"), "{latex}");
        assert!(
            latex.contains("\\begin{tabular}{rl}\n\\toprule\nsize & a\\_b, \\% \\\\\n\\midrule"),
            "{latex}"
        );
        assert!(latex.contains("\\end{tabular}\n\\par\\footnotesize [1] 50 \\% of\\_all\n"), "{latex}");
        let rows = "64 B & 5 \\& 6 [1] \\\\\n{}[5cm] & \\textbackslash{}input\\{x\\} \\\\\n\
                    {}* & \\textasciitilde{}\\textasciicircum{} \\\\\n\\bottomrule";
        assert!(latex.contains(rows), "{latex}");
    }
}
