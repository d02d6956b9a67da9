//! The tables of `docs/columns.md` and `docs/export.md` are made from the columns of CSV and Parquet, by `make types`.

#[cfg(feature = "parquet")]
use crate::rendering::column::FieldKind;
use crate::rendering::column::{ColumnHead, list_heads};
use crate::{exact, findings, program_counts, records, stage_costs};
use std::fmt::Write as _;

const COLUMNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/columns.md");

/// The header of each table that is made here.
const HEADER: &str = "| column |";

/// Compares the rows of a page's tables with what they should be, and writes them where that is asked for.
fn check_page(file: &str, tables: &[String]) {
    let page = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let expected = replace_tables(&page, tables);
    if std::env::var_os("STACKLAB_WRITE_TYPES").is_some() {
        std::fs::write(file, &expected).unwrap();
    } else {
        assert!(page == expected, "{file} is out of date: run `make types`");
    }
}

/// The page with other rows in its tables, in their order.
fn replace_tables(page: &str, tables: &[String]) -> String {
    let mut replaced = String::new();
    let mut tables = tables.iter();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(replaced, "{line}").unwrap();
        if line.starts_with(HEADER) {
            writeln!(replaced, "{}", lines.next().expect("the line below a header")).unwrap();
            replaced += tables.next().expect("as many tables as the page has");
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
        }
    }
    assert!(tables.next().is_none(), "the page lacks a table");
    replaced
}

fn document_names(heads: &[ColumnHead]) -> String {
    let mut rows = String::new();
    for ColumnHead { name, about, .. } in heads {
        assert!(!about.is_empty(), "{name}");
        writeln!(rows, "| `{name}` | {about} |").unwrap();
    }
    rows
}

#[test]
fn columns_md_has_every_column() {
    check_page(
        COLUMNS,
        &[
            document_names(&list_heads(&findings::csv::columns())),
            document_names(&list_heads(&records::columns())),
            document_names(&list_heads(&stage_costs::columns())),
            document_names(&list_heads(&exact::columns())),
            document_names(&list_heads(&program_counts::columns())),
        ],
    );
}

#[cfg(feature = "parquet")]
fn document_types(heads: &[ColumnHead]) -> String {
    let mut rows = String::new();
    for ColumnHead { name, kind, about } in heads {
        let kind = match kind {
            FieldKind::Number => "INT64",
            FieldKind::Figure => "DOUBLE",
            FieldKind::Text => "STRING",
        };
        assert!(!about.is_empty(), "{name}");
        writeln!(rows, "| `{name}` | {kind} | {about} |").unwrap();
    }
    rows
}

#[cfg(feature = "parquet")]
#[test]
fn export_md_has_every_column() {
    use crate::tidy::{fleet, run_columns, slice_columns, value_columns};
    use stacklab_model::Factor;

    const EXPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
    const SETTINGS: &str = "| `io`, `flows`, `direction` and every other setting | STRING | the level of the setting; absent if the default applies |\n";
    const PAIR: &str = "| `pair`, `sender`, `receiver` | | as above |\n";

    let runs = document_types(&list_heads(&run_columns()));
    let values = document_types(&list_heads(&value_columns()));
    // The page says in words that the columns of a cell and of a pair are among them.
    let mut comparison = list_heads(&fleet::question_columns()).split_off(3);
    comparison.retain(|head| Factor::ALL.iter().all(|factor| factor.name() != head.name));
    let comparison = document_types(&comparison);
    let blocks = document_types(&list_heads(&fleet::block_columns()));
    check_page(
        EXPORT,
        &[
            format!("{runs}{values}{SETTINGS}"),
            document_types(&list_heads(&slice_columns())),
            document_types(&list_heads(&fleet::attempt_columns())),
            format!("{PAIR}{comparison}{blocks}"),
        ],
    );
}
