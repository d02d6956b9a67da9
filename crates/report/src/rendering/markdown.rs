//! The document as Markdown (CommonMark, with GitHub's extensions). Titles, names and reasons come from files and other
//! hosts: in them nothing becomes a link, a picture, HTML, a mention of somebody, or another block.

use crate::rendering::document::{Block, plain};
use crate::rendering::grid::draw_table;
use comfy_table::presets::ASCII_MARKDOWN;

pub(super) fn render(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(title) => format!("# {}\n", inline(title)),
        Block::Heading(heading) => format!("## {}\n", inline(heading)),
        Block::Text(text) => format!("{}\n", paragraph(text)),
        Block::Facts(facts) => {
            facts.iter().map(|(name, fact)| format!("- {name}: {}\n", inline(fact))).collect()
        }
        Block::List(points) => points.iter().map(|point| format!("- {}\n", paragraph(point))).collect(),
        Block::Table(table) => {
            let mut text = draw_table(table, ASCII_MARKDOWN, (1, 1), inline);
            for (i, note) in table.footnotes.0.iter().enumerate() {
                let gap = if i == 0 { "\n" } else { "" };
                text += &format!("{gap}- [{}] {}\n", i + 1, inline(note));
            }
            text
        }
    }
}

/// Text at the start of a block, where some characters would begin a heading, a list, a quotation or the target of
/// links.
fn paragraph(text: &str) -> String {
    let text = inline(text);
    if text.starts_with(['#', '>', '=', '[']) || begins_with_mark(&text, '-') || begins_with_mark(&text, '+')
    {
        return format!("\\{text}");
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match text[digits..].chars().next() {
        Some('.' | ')') if digits > 0 => format!("{}\\{}", &text[..digits], &text[digits..]),
        _ => text,
    }
}

/// Whether a text begins with this mark of a list or several, and not with a signed number.
fn begins_with_mark(text: &str, mark: char) -> bool {
    let rest = text.trim_start_matches(mark);
    match text.len() - rest.len() {
        0 => false,
        1 => rest.is_empty() || rest.starts_with(' '),
        _ => true,
    }
}

/// Text within a block, on one line.
fn inline(text: &str) -> String {
    let text = plain(text);
    let chars: Vec<char> = text.trim_start().chars().collect();
    let mut written = String::new();
    let mut at = 0;
    while at < chars.len() {
        let code = code_chars(&chars[at..]);
        if code > 0 {
            written.extend(&chars[at..at + code]);
            at += code;
        } else {
            write_char(&mut written, &chars, at);
            at += 1;
        }
    }
    written
}

/// How many characters a name or a command between backticks takes, at the start of these; 0 if there is none.
fn code_chars(chars: &[char]) -> usize {
    let Some(('`', rest)) = chars.split_first().map(|(first, rest)| (*first, rest)) else { return 0 };
    let inside = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || " -_./=:,".contains(**c)).count();
    let is_padded = inside == 0 || rest[0] == ' ' || rest[inside - 1] == ' ';
    if !is_padded && rest.get(inside) == Some(&'`') { inside + 2 } else { 0 }
}

/// Writes the character at this place so that it is shown as it is.
fn write_char(written: &mut String, chars: &[char], at: usize) {
    const ZERO_WIDTH_SPACE: char = '\u{200b}';
    let c = chars[at];
    let rest = &chars[at + 1..];
    let next = rest.first().copied().unwrap_or(' ');
    let is_within_a_word = next.is_alphanumeric() && chars[..at].last().is_some_and(|c| c.is_alphanumeric());
    let must_escape = match c {
        '\\' | '`' | '*' | '~' | '$' | '|' => true,
        '_' => !is_within_a_word,
        '!' => next == '[',
        ']' => matches!(next, '(' | '[' | ':'),
        // Addresses of the web are links in GitHub's Markdown without any mark.
        ':' => rest.starts_with(&['/', '/']),
        '.' => chars[..at].iter().rev().take(3).filter(|c| c.eq_ignore_ascii_case(&'w')).count() == 3,
        _ => false,
    };
    match c {
        '<' if next.is_ascii_alphabetic() || "/!?".contains(next) => written.push_str("&lt;"),
        '&' if next.is_ascii_alphanumeric() || next == '#' => written.push_str("&amp;"),
        _ if must_escape => written.extend(['\\', c]),
        _ => written.push(c),
    }
    // Mentions and numbers of issues are found in the text that is shown, whatever marks it had.
    if (c == '@' && (next.is_alphanumeric() || "-_".contains(next))) || (c == '#' && next.is_ascii_digit()) {
        written.push(ZERO_WIDTH_SPACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendering::document::Table;

    #[test]
    fn text_of_strangers_has_no_meaning() {
        for (text, expected) in [
            ("![i](http://e.example/i.png)", "\\![i\\](http\\://e.example/i.png)"),
            ("[click](javascript:x) [a][b] [c]: d", "[click\\](javascript:x) [a\\][b] [c\\]: d"),
            ("<img src=x> </details> <!-- <?x", "&lt;img src=x> &lt;/details> &lt;!-- &lt;?x"),
            ("<http://e.example> www.e.example", "&lt;http\\://e.example> www\\.e.example"),
            ("&lt;img&#62; a & b", "&amp;lt;img&amp;#\u{200b}62; a & b"),
            ("@someone a@e.example repo#12", "@\u{200b}someone a@\u{200b}e.example repo#\u{200b}12"),
            ("**a** _b_ ~~c~~ $d$ a|b \\", "\\*\\*a\\*\\* \\_b\\_ \\~\\~c\\~\\~ \\$d\\$ a\\|b \\\\"),
            ("```html", "\\`\\`\\`html"),
            ("`[a](b)` and `--set x=1`, `", "\\`[a\\](b)\\` and `--set x=1`, \\`"),
            ("``a`` \u{202e}b\u{2028}c", "\\``a`\\`  b c"),
        ] {
            assert_eq!(inline(text), expected, "{text}");
        }
    }

    #[test]
    fn figures_and_names_stay_readable() {
        for text in ["-0.90 [-4.00, +2.20]", "- [1]", "TCP_INFO < 5 & more", "eth0 (udp)", "a. b: c"] {
            assert_eq!(inline(text), text);
        }
        assert_eq!(paragraph("-0.9 %, 12 of 13"), "-0.9 %, 12 of 13");
    }

    #[test]
    fn text_at_the_start_of_a_block_begins_no_other_block() {
        for text in ["# a", "> a", "- a", "--- a", "-", "+ a", "=== a", "[1]: http:x"] {
            assert!(paragraph(text).starts_with('\\'), "{text}");
        }
        assert_eq!(paragraph("    code"), "code");
        assert_eq!([paragraph("12. a"), paragraph("1) a")], ["12\\. a", "1\\) a"]);
    }

    fn hostile() -> String {
        "<b>[a](b)|".to_owned()
    }

    #[test]
    fn every_block_is_escaped() {
        let mut table = Table::default();
        table.push(hostile(), false, vec![hostile()]);
        table.footnotes.mark(&hostile());
        let blocks = [
            Block::Title(hostile()),
            Block::Heading(hostile()),
            Block::Text(hostile()),
            Block::Facts(vec![("fact", hostile())]),
            Block::List(vec![hostile()]),
            Block::Table(table),
        ];
        let markdown = render(&blocks);
        assert_eq!(markdown.matches("&lt;b>[a\\](b)\\|").count(), 8, "{markdown}");
        assert!(!markdown.contains('<'), "{markdown}");
    }
}
