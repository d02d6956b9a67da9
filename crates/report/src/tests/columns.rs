//! Compares `docs/columns.md` with the lists of columns; `make types` writes it.

use crate::rendering::csv::Field;
use crate::{exact, findings, records, stage_costs};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/columns.md");

/// The columns as a Markdown table.
fn documentation(columns: &[Field]) -> String {
    let rows = columns.iter().map(|column| format!("| `{}` | {} |\n", column.name, column.doc));
    format!("| column | content |\n|---|---|\n{}", rows.collect::<String>())
}

/// The columns of every CSV of figures.
fn column_docs() -> String {
    format!(
        "# Columns of CSV\n\n\
         Figures are unrounded and in the metric's unit (shares from 0 to 1). An empty field is an absent figure, never zero. CSV is\n\
         RFC 4180 in UTF-8. The columns of `stacklab export` are in [export](export.md).\n\n\
         ## `stacklab report --format csv`\n\n\
         A row is a comparison, or a cell and metric that no comparison shows: then `factor` is empty, `baseline_*` hold its\n\
         estimate, and everything about a comparison is empty.\n\n\
         {}\n\
         ## `stacklab compare --format csv`\n\n\
         A row is one metric of one cell that both records have.\n\n\
         {}\n\
         ## `stacklab explain --format csv`\n\n\
         A row is a stage of the network stack, or a function, in two arms.\n\n\
         {}\n\
         ## `stacklab explain --exact --format csv`\n\n\
         A row is a stage of the network stack, or a function, in both arms ([exact](exact.md)).\n\n\
         {}",
        documentation(&findings::csv::fields(None, None)),
        documentation(&records::csv::fields(None)),
        documentation(&stage_costs::fields(None)),
        documentation(&exact::fields(None))
    )
}

#[test]
fn every_column_is_documented() {
    let page = column_docs();
    if std::env::var_os("STACKLAB_WRITE_TYPES").is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let found = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(found == page, "docs/columns.md is not made from the columns; run `make types`");
}
