//! Differences that studies state.

use crate::rows::printed::Printed;
use crate::rows::{CsvRow, ReferenceError, rows};
use stacklab_model::Better;

/// Two figures and their difference as a study states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The study.
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The compared quantity, in words.
    pub metric: String,
    /// Unit of both figures.
    pub unit: String,
    /// Which figure is better.
    pub better: Better,
    /// One arm.
    pub a_label: String,
    /// Its figure.
    pub a: Printed,
    /// The other arm.
    pub b_label: String,
    /// Its figure.
    pub b: Printed,
    /// The stated difference in the figures' unit.
    pub difference: Option<Printed>,
    /// The stated difference in per cent, or in what the study calls per cent.
    pub percent: Option<Printed>,
}

impl Claim {
    /// The stated difference to audit: the per cent if stated, otherwise the difference in the figures' unit.
    pub fn stated(&self) -> &Printed {
        self.percent
            .as_ref()
            .or(self.difference.as_ref())
            .expect("a claim that was read states one of the two")
    }
}

const COLUMNS: &[&str] = &[
    "source",
    "location",
    "metric",
    "unit",
    "better",
    "a_label",
    "a",
    "b_label",
    "b",
    "published_difference",
    "published_percent",
];

/// Reads `claims.csv`.
pub(crate) fn read(text: &str) -> Result<Vec<Claim>, ReferenceError> {
    rows("claims.csv", text, COLUMNS, |row| {
        let claim = Claim {
            source: row.source()?,
            location: row.filled("location")?,
            metric: row.filled("metric")?,
            unit: row.filled("unit")?,
            better: row.read("better", better)?,
            a_label: row.filled("a_label")?,
            a: row.read("a", str::parse)?,
            b_label: row.filled("b_label")?,
            b: row.read("b", str::parse)?,
            difference: optional(row, "published_difference")?,
            percent: optional(row, "published_percent")?,
        };
        if claim.difference.is_none() && claim.percent.is_none() {
            return Err(row.wrong("neither `published_difference` nor `published_percent` is stated"));
        }
        Ok(claim)
    })
}

fn better(text: &str) -> Result<Better, String> {
    match text {
        "higher" => Ok(Better::Higher),
        "lower" => Ok(Better::Lower),
        _ => Err(format!("`{text}` is neither higher nor lower")),
    }
}

fn optional(row: &CsvRow<'_>, column: &str) -> Result<Option<Printed>, ReferenceError> {
    if row.text(column).is_empty() { Ok(None) } else { row.read(column, str::parse).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_a_stated_difference_is_refused_with_its_line() {
        let header = COLUMNS.join(",");
        let error = read(&format!("{header}\nkolahi2009lan,IV,rtt,ms,lower,a,1.0,b,2.0,,\n")).unwrap_err();
        assert_eq!((error.file, error.line), ("claims.csv", 2));
        let error = read(&format!("{header}\nkolahi2009lan,IV,rtt,ms,less,a,1.0,b,2.0,1,\n")).unwrap_err();
        assert_eq!(error.to_string(), "reference/claims.csv:2: `better`: `less` is neither higher nor lower");
    }
}
