//! CSV (RFC 4180) that spreadsheets show as it is. They take a field that begins with `=`, `+`, `-` or `@` for a
//! formula, which may call other programs; such texts are written behind an apostrophe. Control characters, which
//! change terminals, become spaces. Figures are as they are.

use crate::rendering::document::plain;

/// How texts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    /// For spreadsheets.
    Guarded,
    /// As they are, for programs.
    Raw,
}

/// Lines of fields, as many in each.
pub(crate) fn render(lines: impl Iterator<Item = Vec<String>>, cells: Cells) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        let line = line.into_iter().map(|field| if cells == Cells::Guarded { guarded(field) } else { field });
        writer.write_record(line).expect("every row has the header's columns, and memory can be written to");
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("CSV of strings is a string")
}

fn guarded(field: String) -> String {
    let begins_a_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = plain(&field);
    let is_figure = field.chars().all(|c| c.is_ascii_digit() || ".,+-±%[]() e".contains(c));
    if begins_a_formula && !is_figure { format!("'{field}") } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_and_figures_are_figures() {
        for hidden in ["\t=1", "\r=1"] {
            assert_eq!(guarded(hidden.to_owned()), "' =1");
        }
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(A1)"] {
            assert_eq!(guarded(formula.to_owned()), format!("'{formula}"));
        }
        for plain in ["", "-1.5", "-1.5e-7", "+0.3 [-0.1, +0.7]", "-5.9 ± 0.3", "-4 %", "ipv4", "a=b", "a-b"]
        {
            assert_eq!(guarded(plain.to_owned()), plain);
        }
        assert_eq!(guarded("a\u{1b}[31m\nb".to_owned()), "a [31m b");
        let lines = || [vec!["name".to_owned()], vec!["=x".to_owned()]].into_iter();
        assert_eq!(render(lines(), Cells::Guarded), "name\n'=x\n");
        assert_eq!(render(lines(), Cells::Raw), "name\n=x\n");
    }
}
