//! Compares the tables of `docs/columns.md` with the columns of CSV.

use crate::rendering::csv::Field;
use crate::{exact, findings, records, stage_costs};

#[test]
fn every_column_is_documented() {
    let names = |columns: Vec<Field>| columns.into_iter().map(|column| column.name.into_owned()).collect();
    let columns: [Vec<String>; 4] = [
        names(findings::csv::fields(None, None)),
        names(records::fields(None)),
        names(stage_costs::fields(None)),
        names(exact::fields(None)),
    ];
    let page = include_str!("../../../../docs/columns.md");
    let documented = page.split("\n## ").skip(1).map(|section| -> Vec<String> {
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        rows.filter(|(_, content)| content.len() > " |".len()).map(|(name, _)| name.to_owned()).collect()
    });
    assert_eq!(documented.collect::<Vec<_>>(), columns);
}
