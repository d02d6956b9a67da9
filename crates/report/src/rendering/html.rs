//! The document as elements of an HTML page. Titles, names and cells come from commands, files and other hosts: all of
//! them are text.

use crate::rendering::document::{Block, Table, escape_text};

/// The blocks as HTML, one after the other, without a page around them. Tables are in elements of the class `scroll`,
/// cells on the right have the class `number`.
pub fn document_html(blocks: &[Block]) -> String {
    blocks.iter().map(write_block).collect()
}

fn write_block(block: &Block) -> String {
    match block {
        Block::Title(title) => format!("<h1>{}</h1>\n", escape_text(title)),
        Block::Heading(heading) => format!("<h2>{}</h2>\n", escape_text(heading)),
        Block::Text(text) => format!("<p>{}</p>\n", escape_text(text)),
        Block::Facts(facts) => {
            let mut html = "<dl class=\"facts\">\n".to_owned();
            for (name, fact) in facts {
                html += &format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_text(name), escape_text(fact));
            }
            html + "</dl>\n"
        }
        Block::List(points) => format!("<ul>\n{}</ul>\n", write_points(points)),
        Block::Table(table) => write_table(table),
    }
}

fn write_points(points: &[String]) -> String {
    points.iter().map(|point| format!("<li>{}</li>\n", escape_text(point))).collect()
}

/// The table, scrolled by itself where the page is narrow. The first cell names its row.
fn write_table(table: &Table) -> String {
    let mut html = "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr>".to_owned();
    for (title, is_right) in &table.columns {
        html += &format!("<th scope=\"col\"{}>{}</th>", choose_class(*is_right), escape_text(title));
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        html += "<tr>";
        for (place, cell) in row.iter().enumerate() {
            let class = choose_class(table.columns[place].1);
            html += &match place {
                0 => format!("<th scope=\"row\"{class}>{}</th>", escape_text(cell)),
                _ => format!("<td{class}>{}</td>", escape_text(cell)),
            };
        }
        html += "</tr>\n";
    }
    html += "</tbody>\n</table>\n</div>\n";
    if !table.footnotes.0.is_empty() {
        html += &format!("<ol class=\"footnotes\">\n{}</ol>\n", write_points(&table.footnotes.0));
    }
    html
}

fn choose_class(is_right: bool) -> &'static str {
    if is_right { " class=\"number\"" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_rows_below_titles() {
        let mut table = Table::default();
        table.push("network", false, vec!["both".to_owned()]);
        table.push("first byte", true, vec!["12 ms".to_owned()]);
        table.footnotes.mark("why");
        let html = document_html(&[Block::Table(table)]);
        assert!(
            html.contains("<th scope=\"col\">network</th><th scope=\"col\" class=\"number\">first byte</th>")
        );
        assert!(
            html.contains("<tr><th scope=\"row\">both</th><td class=\"number\">12 ms</td></tr>"),
            "{html}"
        );
        assert!(html.contains("<li>why</li>"), "{html}");
    }

    fn hostile() -> String {
        "<script>alert('1')</script>&".to_owned()
    }

    #[test]
    fn no_text_becomes_an_element() {
        let mut table = Table::default();
        table.push(hostile(), false, vec![hostile()]);
        table.footnotes.mark(&hostile());
        let texts = [Block::Title(hostile()), Block::Heading(hostile()), Block::Text(hostile())];
        let lists = [Block::Facts(vec![("fact", hostile())]), Block::List(vec![hostile()])];
        let html = document_html(&[&texts[..], &lists, &[Block::Table(table)]].concat());
        assert!(!html.contains("<script"), "{html}");
        let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;";
        assert_eq!(html.matches(escaped).count(), 8, "{html}");
    }
}
