//! Compares `docs/columns.md` with the lists of columns; `make types` writes it.

use crate::column_docs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/columns.md");

#[test]
fn every_column_is_documented() {
    let page = column_docs();
    if std::env::var_os("STACKLAB_WRITE_TYPES").is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let found = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(found == page, "docs/columns.md is not made from the columns; run `make types`");
}
