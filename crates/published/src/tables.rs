//! The rows of the tables in `reference/`: figures, the differences that studies state, and conditions.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stacklab_model::{Better, once_each};
use std::fmt;
use std::str::FromStr;

/// An invalid row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reference/{file}:{line}: {what}")]
pub struct ReferenceError {
    file: &'static str,
    line: u64,
    what: String,
}

/// Reads every row of a file, and checks it. Only `optional` columns may be empty; `source` is a study.
pub(crate) fn rows<T: DeserializeOwned>(
    file: &'static str,
    text: &str,
    optional: &[&str],
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<Vec<T>, ReferenceError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| locate_error(file, &error))?.clone();
    let mut found = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| locate_error(file, &error))?;
        let filled = header.iter().zip(&record).try_for_each(|(column, text)| match (column, text) {
            ("source", name) => crate::study(name).map(drop),
            (column, "") if !optional.contains(&column) => Err(format!("`{column}` is empty")),
            _ => Ok(()),
        });
        let row: T = record.deserialize(Some(&header)).map_err(|error| locate_error(file, &error))?;
        let line = record.position().map_or(0, csv::Position::line);
        filled.and_then(|()| check(&row)).map_err(|what| ReferenceError { file, line, what })?;
        found.push(row);
    }
    Ok(found)
}

fn locate_error(file: &'static str, error: &csv::Error) -> ReferenceError {
    let line = error.position().map_or(1, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        _ => error.to_string(),
    };
    ReferenceError { file, line, what }
}

/// A decimal figure with its printed digits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Printed {
    text: String,
    /// Its value.
    pub value: f64,
    /// Digits after the decimal point.
    decimals: u32,
}

impl Printed {
    /// Whether an exact figure is printed like this: rounded to the nearest figure with this many decimals. A figure
    /// halfway between two may be rounded either way. A truncated figure does not count.
    pub(crate) fn is_rounded_from(&self, exact: f64) -> bool {
        (exact - self.value).abs() <= self.half_unit() + SLACK
    }

    /// The lowest and the highest figure that is printed like this when rounded.
    pub(crate) fn range(&self) -> [f64; 2] {
        [self.value - self.half_unit(), self.value + self.half_unit()]
    }

    /// Whether some figure of a range is printed like this.
    pub(crate) fn is_rounded_from_range(&self, [low, high]: [f64; 2]) -> bool {
        let [least, most] = self.range();
        low <= most + SLACK && high >= least - SLACK
    }

    /// Half of the last digit's unit.
    fn half_unit(&self) -> f64 {
        0.5 * 0.1_f64.powi(self.decimals as i32)
    }
}

/// Tolerance for floating-point error: figures have at most five digits, and formulas a few steps.
const SLACK: f64 = 1e-9;

impl FromStr for Printed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a decimal figure, such as 12.50");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() || !has_only_digits(whole) || !has_only_digits(fraction) || text.ends_with('.') {
            return Err(wrong());
        }
        let value = text.parse().map_err(|_| wrong())?;
        Ok(Printed { text: text.to_owned(), value, decimals: fraction.len() as u32 })
    }
}

fn has_only_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl TryFrom<String> for Printed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// One figure of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedFigure {
    pub(crate) source: String,
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
    pub(crate) topology: String,
    /// Bytes, or `all`, `min`, `max`.
    #[serde(rename = "size_bytes")]
    pub size: String,
    /// The study's metric.
    pub metric: String,
    /// The metric's unit.
    pub unit: String,
    /// The figure.
    pub value: Printed,
}

pub(crate) fn figures(text: &str) -> Result<Vec<PublishedFigure>, ReferenceError> {
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
pub(crate) struct PublishedTable {
    /// Location, metric with its unit, transport, mechanism.
    pub title: String,
    /// The systems and family of each column.
    pub columns: Vec<(String, String)>,
    /// Size, then a figure for each column as printed; empty if there is none.
    pub rows: Vec<(String, Vec<String>)>,
}

/// The tables of figures, in the order of their first figures.
pub(crate) fn published_tables(figures: &[PublishedFigure]) -> Vec<PublishedTable> {
    let mut tables = Vec::new();
    for title in once_each(figures.iter().map(name_table)) {
        let own: Vec<&PublishedFigure> =
            figures.iter().filter(|figure| name_table(figure) == title).collect();
        let columns = once_each(own.iter().map(|figure| name_column(figure)));
        let mut sizes = once_each(own.iter().map(|figure| figure.size.clone()));
        // Numbers first, in ascending order; words keep their order.
        sizes.sort_by_key(|size| size.parse::<u32>().unwrap_or(u32::MAX));
        let mut rows = Vec::new();
        for size in sizes {
            let cells = columns.iter().map(|column| find_cell(&own, &size, column)).collect();
            rows.push((size, cells));
        }
        tables.push(PublishedTable { title, columns, rows });
    }
    tables
}

fn name_table(figure: &PublishedFigure) -> String {
    let PublishedFigure { location, metric, unit, transport, mechanism, .. } = figure;
    let transport = if transport == "both" { "tcp and udp" } else { transport };
    let through = if mechanism == "none" { String::new() } else { format!(", {mechanism}") };
    format!("{location}: {metric}, {unit}, {transport}{through}")
}

/// The systems and family of a figure.
fn name_column(figure: &PublishedFigure) -> (String, String) {
    let ip = if figure.ip == "both" { "ipv4 and ipv6" } else { figure.ip.as_str() };
    (figure.os.clone(), ip.to_owned())
}

/// The figure of a size and a column, as printed; empty if there is none.
fn find_cell(figures: &[&PublishedFigure], size: &str, column: &(String, String)) -> String {
    let found = figures.iter().find(|figure| figure.size == size && name_column(figure) == *column);
    found.map_or_else(String::new, |figure| figure.value.to_string())
}

/// Two figures and their difference as a study states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Claim {
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The compared quantity, in words.
    pub metric: String,
    /// Unit of both figures.
    pub unit: String,
    #[serde(rename = "better")]
    _better: Better,
    pub a_label: String,
    pub a: Printed,
    pub b_label: String,
    pub b: Printed,
    /// The stated difference in the figures' unit.
    #[serde(rename = "published_difference")]
    pub difference: Option<Printed>,
    /// The stated difference in per cent, or in what the study calls per cent.
    #[serde(rename = "published_percent")]
    pub percent: Option<Printed>,
}

impl Claim {
    /// The stated difference to audit: the per cent if stated, otherwise the difference in the figures' unit.
    pub(crate) fn stated_difference(&self) -> &Printed {
        let stated = self.percent.as_ref().or(self.difference.as_ref());
        stated.expect("a claim that was read states one of the two")
    }
}

pub(crate) fn claims(text: &str) -> Result<Vec<Claim>, ReferenceError> {
    rows("claims.csv", text, &["published_difference", "published_percent"], |claim: &Claim| {
        match (&claim.difference, &claim.percent) {
            (None, None) => {
                Err("neither `published_difference` nor `published_percent` is stated".to_owned())
            }
            _ => Ok(()),
        }
    })
}

/// The kind of a condition. A finding about it cannot be judged without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LimitKind {
    System,
    Link,
    Router,
    Wifi,
    /// The roles of the two hosts.
    Topology,
    /// Services running on the hosts.
    Services,
    /// The traffic generator.
    Tool,
}

/// A condition that a testbed of namespaces cannot reproduce.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Limit {
    #[serde(skip_serializing)]
    pub source: String,
    #[serde(skip_serializing)]
    pub kind: LimitKind,
    /// The study's condition.
    pub original: String,
    /// The preset's replacement.
    pub stand_in: String,
    /// The requirement for reproducing it.
    pub needs: String,
}

pub(crate) fn limits(text: &str) -> Result<Vec<Limit>, ReferenceError> {
    rows("limits.csv", text, &[], |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, STUDIES};

    #[derive(Debug, serde::Deserialize)]
    struct TestTableRow {
        #[serde(rename = "source")]
        _source: String,
        n: u32,
    }

    #[test]
    fn an_error_says_file_line_and_reason() {
        assert_eq!(read_rows("source,n\nkolahi2009lan,7\n").unwrap()[0].n, 7);
        for (rows, reason) in [
            ("n\nkolahi2009lan,7\nkolahi2009lan,x", "3: field 1: invalid digit found in string"),
            ("n\nkolahi2009lan,10", "2: `n` is above 9"),
            ("m\nkolahi2009lan,7", "2: missing field `n`"),
        ] {
            let error = read_rows(&format!("source,{rows}\n")).unwrap_err().to_string();
            assert_eq!(error, format!("reference/t.csv:{reason}"));
        }
        let unknown = read_rows("source,n\nnobody,7\n").unwrap_err().to_string();
        assert!(
            unknown.starts_with("reference/t.csv:2: there is no published study `nobody`: "),
            "{unknown}"
        );
        let short = read_rows("source,n\nkolahi2009lan\n").unwrap_err().to_string();
        assert!(short.starts_with("reference/t.csv:2: "), "{short}");
    }

    fn read_rows(text: &str) -> Result<Vec<TestTableRow>, ReferenceError> {
        rows("t.csv", text, &[], check_row)
    }

    fn check_row(row: &TestTableRow) -> Result<(), String> {
        if row.n > 9 { Err("`n` is above 9".to_owned()) } else { Ok(()) }
    }

    fn parse(text: &str) -> Printed {
        text.parse().unwrap()
    }

    #[test]
    fn the_digits_that_are_printed_are_kept() {
        let figure = parse("91.50");
        assert_eq!((figure.value, figure.decimals, figure.to_string().as_str()), (91.5, 2, "91.50"));
        assert_eq!(parse("138").decimals, 0);
        for wrong in ["", ".5", "5.", "-1", "1e3", "NaN", "1,5"] {
            assert!(wrong.parse::<Printed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounds_to_the_last_printed_digit() {
        assert!(parse("13.42").is_rounded_from(13.4155) && !parse("13.41").is_rounded_from(13.4155));
        // A figure halfway may be rounded either way; binary fractions do not decide.
        assert!(parse("0.12").is_rounded_from(0.125) && parse("0.13").is_rounded_from(0.125));
        assert!(parse("8.32").is_rounded_from(90.35 - 82.03));
        assert!(!parse("8.32").is_rounded_from(8.3251));
    }

    #[test]
    fn a_range_needs_one_figure_that_rounds_to_it() {
        let figure = parse("13.41");
        assert_eq!(parse("24.5").range(), [24.45, 24.55]);
        assert!(figure.is_rounded_from_range([13.4141, 13.4169]));
        assert!(figure.is_rounded_from_range([13.0, 14.0]));
        assert!(
            !figure.is_rounded_from_range([13.4151, 13.42]) && !figure.is_rounded_from_range([13.0, 13.4049])
        );
    }

    #[test]
    fn claim_without_difference_is_refused_with_its_line() {
        let header =
            "source,location,metric,unit,better,a_label,a,b_label,b,published_difference,published_percent";
        let error = claims(&format!("{header}\nkolahi2009lan,IV,rtt,ms,lower,a,1.0,b,2.0,,\n")).unwrap_err();
        assert_eq!((error.file, error.line), ("claims.csv", 2));
        let error = claims(&format!("{header}\nkolahi2009lan,IV,rtt,ms,less,a,1.0,b,2.0,1,\n")).unwrap_err();
        assert!(error.to_string().starts_with("reference/claims.csv:2: unknown variant `less`"), "{error}");
    }

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
    fn table_has_sizes_down_and_systems_across() {
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
