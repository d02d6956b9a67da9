//! Published figures, and their arrangement in the printed tables.

use crate::Printed;
use crate::rows::{ReferenceError, rows};
use serde::Deserialize;
use stacklab_model::once_each;

/// One figure of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedFigure {
    /// The study.
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The systems.
    pub os: String,
    /// Address family: `ipv4`, `ipv6`, `both`, or `6in4` for IPv6 in a tunnel.
    pub ip: String,
    /// `tcp`, `udp` or `both`.
    pub transport: String,
    /// Transition mechanism, or `none`.
    pub mechanism: String,
    /// How the hosts are connected.
    pub topology: String,
    /// The link.
    pub link: String,
    /// Bytes, or `all`, `min`, `max`.
    #[serde(rename = "size_bytes")]
    pub size: String,
    /// The study's metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The figure.
    pub value: Printed,
}

pub(crate) fn read(text: &str) -> Result<Vec<PublishedFigure>, ReferenceError> {
    rows("published.csv", text, &[], |figure: &PublishedFigure| {
        let size = &figure.size;
        if matches!(size.as_str(), "all" | "min" | "max") || size.parse::<u32>().is_ok() {
            return Ok(());
        }
        Err(format!("`{size}` is not a number of bytes, nor all, min or max"))
    })
}

/// One table: figures of one location, metric and transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedTable {
    /// Location, metric with its unit, transport, mechanism.
    pub title: String,
    /// The systems and family of each column.
    pub columns: Vec<(String, String)>,
    /// Size, then a figure for each column as printed; empty if there is none.
    pub rows: Vec<(String, Vec<String>)>,
}

/// The tables of figures, in the order of their first figures.
pub fn published_tables(figures: &[PublishedFigure]) -> Vec<PublishedTable> {
    let table = |figure: &PublishedFigure| {
        let PublishedFigure { location, metric, unit, transport, mechanism, .. } = figure;
        let transport = if transport == "both" { "tcp and udp" } else { transport };
        let through = if mechanism == "none" { String::new() } else { format!(", {mechanism}") };
        format!("{location}: {metric}, {unit}, {transport}{through}")
    };
    let column = |figure: &PublishedFigure| {
        let ip = if figure.ip == "both" { "ipv4 and ipv6" } else { figure.ip.as_str() };
        (figure.os.clone(), ip.to_owned())
    };
    once_each(figures.iter().map(table))
        .into_iter()
        .map(|title| {
            let own: Vec<_> = figures.iter().filter(|figure| table(figure) == title).collect();
            let columns = once_each(own.iter().map(|figure| column(figure)));
            let mut sizes = once_each(own.iter().map(|figure| figure.size.clone()));
            // Numbers first, in ascending order; words keep their order.
            sizes.sort_by_key(|size| size.parse::<u32>().unwrap_or(u32::MAX));
            let rows = sizes.into_iter().map(|size| {
                let cell = |name: &(String, String)| {
                    let is = |figure: &&&PublishedFigure| figure.size == size && column(figure) == *name;
                    own.iter().find(is).map_or_else(String::new, |figure| figure.value.to_string())
                };
                let cells = columns.iter().map(cell).collect();
                (size.clone(), cells)
            });
            PublishedTable { rows: rows.collect(), title, columns }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, STUDIES};

    #[test]
    fn every_figure_stands_in_a_table_once() {
        let all = Reference::built_in().unwrap();
        for study in STUDIES {
            let own = all.of(study.name);
            let tables = published_tables(&own.figures);
            let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|(_, cells)| cells);
            assert_eq!(cells.filter(|cell| !cell.is_empty()).count(), own.figures.len(), "{}", study.name);
        }
    }

    #[test]
    fn a_table_has_sizes_down_and_systems_and_families_across() {
        let own = Reference::built_in().unwrap().of("ogunleye2016");
        let tables = published_tables(&own.figures);
        assert_eq!(tables.len(), 10);
        assert_eq!(tables[0].title, "Figure 7: throughput, Mbit/s, tcp, configured-tunnel");
        assert_eq!(
            tables[0].columns,
            ["Windows Server 2008", "Ubuntu"].map(|os| (os.to_owned(), "6in4".to_owned()))
        );
        assert_eq!(tables[0].rows.len(), 13);
        assert_eq!(tables[0].rows[0], ("64".to_owned(), vec!["51.06".to_owned(), "50.93".to_owned()]));
    }
}
